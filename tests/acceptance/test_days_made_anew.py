"""What comes late, is edited, deleted or written by hand once days are folded up to a month (AT-9, AT-10)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import date, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import trimming
from memory import conversations, message_changes
from memory.columns import metadata
from memory.conversations import Message
from memory.database import Database
from memory.recall import stale_rows, summary_rows
from memory.recall.kinds import CALENDAR, Kind
from memory.recall.summary_rows import State
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse, utc_now_at
from tests.gateway.test_forgetting_whole import rows_of

FIRST = date(2026, 3, 2)  # a Monday
WEEKS = 10
LITTLE = {"context": {"memory_budget": 300}, "days": {"remember_tokens": 0, "tail": 0}}


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-02T12:00")
    made = RowsHouse(sqlite, tmp_path, clock, profile="calendar", **LITTLE)
    await made.person()
    yield made
    await made.close()


async def months(house: RowsHouse, chat: str, *, evenings: bool = True) -> list[Message]:
    """Ten weeks with a walk and an evening a day, so little room that the first of them are one month; the messages of the walks."""
    talk: list[Message] = []
    loose = "" if evenings else " / and home"  # which the model says closer together twice, so that weeks can become a month
    for n in range(7 * WEEKS):
        day = FIRST + timedelta(days=n)
        talk.append(await house.says(chat, f"harbour walk of {day}{loose}", at=utc_now_at(f"{day}T12:00")))
        if evenings:
            await house.says(chat, "quiet", at=utc_now_at(f"{day}T20:00"))
    await house.at(f"{FIRST + timedelta(days=7 * WEEKS)}T10:00")
    [month, *_] = await house.rows(chat, Kind.MONTH)
    assert month.first_seq <= talk[3].seq <= month.last_seq
    return talk


@pytest.mark.slow
@pytest.mark.rule("RS-166", "RS-189", "RS-164")
@pytest.mark.case("AT-9", "K13")
async def test_inside_a_month_late_edited_deleted_and_forgotten_talk_is_made_anew_from_the_day_up(house: RowsHouse, tmp_path: Path) -> None:
    chat = await house.made()
    talk = await months(house, chat)
    last = FIRST + timedelta(days=7 * WEEKS)
    calls = house.calls
    await house.says(chat, "a batch that came late", at=utc_now_at(f"{FIRST + timedelta(days=2)}T18:00"))
    await house.at(f"{last}T10:01")
    await house.db.write(lambda c: message_changes.correct(c, talk[3], "the corrected quay", house.clock()))
    await house.at(f"{last}T10:05")
    assert "the corrected quay" not in await house.stands(chat), "not before ten minutes"
    await house.at(f"{last}T11:00")
    stands = await house.stands(chat)
    assert "the corrected quay" in stands and "a batch that came late" in stands
    assert house.calls - calls <= 8, "that day, its week and its month, no other"
    doomed = (talk[3], talk[10])

    def take_away(c: sa.Connection) -> None:
        for message in doomed:
            message_changes.forget(c, message.id)
            trimming.changed(c, chat, message.seq, message.seq, house.clock())

    await house.db.write(take_away)
    assert "the corrected quay" not in await house.stands(chat), "withheld at once"
    await house.at(f"{last}T11:30")
    assert "harbour walk of 2026-03-04" in await house.stands(chat)
    every = await house.rows(chat, states=tuple(State))
    assert [row.text for row in every if "the corrected quay" in row.text or f"walk of {FIRST + timedelta(days=10)}" in row.text] == []
    covered = await house.stood_for(chat, *CALENDAR)
    assert len(covered) == len(set(covered)) == 2 * 7 * WEEKS + 1 - len(doomed)
    stores = [name for name in metadata.tables if name != "messages" and "the corrected quay" in await rows_of(tmp_path, {name})]
    assert stores == []


@pytest.mark.slow
@pytest.mark.rule("RS-166", "RS-189")
@pytest.mark.case("AT-9", "AT-19")
async def test_a_folded_day_whose_only_message_was_forgotten_keeps_no_word_of_it(house: RowsHouse) -> None:
    chat = await house.made()
    talk = await months(house, chat, evenings=False)
    await house.db.write(lambda c: message_changes.forget(c, talk[3].id))
    await house.at(f"{FIRST + timedelta(days=7 * WEEKS)}T11:00")
    assert [row.local_date for row in await house.rows(chat, states=tuple(State)) if "walk of 2026-03-05" in row.text] == []


@pytest.mark.slow
@pytest.mark.rule("RS-166")
@pytest.mark.case("AT-9", "K13")
async def test_an_edit_is_not_lost_when_a_late_message_is_folded_in_before_it_was_made_anew(house: RowsHouse) -> None:
    chat = await house.made()
    talk = await months(house, chat)
    last = FIRST + timedelta(days=7 * WEEKS)
    await house.db.write(lambda c: message_changes.correct(c, talk[3], "the corrected quay", house.clock()))
    await house.says(chat, "a batch that came late", at=utc_now_at(f"{FIRST + timedelta(days=2)}T18:00"))
    await house.at(f"{last}T10:01")
    await house.at(f"{last}T11:00")
    assert "the corrected quay" in await house.stands(chat)


@pytest.mark.slow
@pytest.mark.rule("RS-166", "RS-48", "RS-54", "RS-195")
@pytest.mark.case("AT-10")
@pytest.mark.parametrize("kind", [Kind.DAY, Kind.WEEK, Kind.MONTH])
async def test_a_row_that_a_person_wrote_reads_the_same_after_every_automatic_path(house: RowsHouse, kind: Kind) -> None:
    chat = await house.made()
    talk = await months(house, chat)
    last = FIRST + timedelta(days=7 * WEEKS)
    await house.says(chat, "one more day", at=utc_now_at(f"{last}T12:00"))
    await house.at(f"{last + timedelta(days=1)}T10:00")
    row = (await house.rows(chat, kind))[0]
    seqs = (await house.db.read(lambda c: summary_rows.sources_of(c, [row.id])))[row.id]
    await house.db.write(lambda c: summary_rows.edit(c, row.id, house.clock(), text="in my own words"))
    inside = next(message for message in [*talk, *await newest(house, chat)] if message.seq in seqs)
    await house.db.write(lambda c: message_changes.correct(c, inside, "corrected", house.clock()))  # an edit of a source
    await house.says(chat, "late", at=inside.created_at + timedelta(minutes=1))  # a late one
    for n in range(1, 12):  # further days, weeks and months are made and folded
        await house.says(chat, f"later {n}", at=utc_now_at(f"{last + timedelta(days=n)}T12:00"))
        await house.at(f"{last + timedelta(days=n + 1)}T10:00")
    kept = await house.db.read(lambda c: summary_rows.one(c, row.id))
    assert kept is not None
    assert (kept.text, kept.hand_edited, kept.stale) == ("in my own words", True, True)
    assert "in my own words" in await house.stands(chat) or kept.state is State.INACTIVE, "it stands, or was input of a fold"
    assert not await house.db.read(lambda c: stale_rows.due(c, house.clock())), "nothing waits to rewrite it"


async def newest(house: RowsHouse, chat: str) -> list[Message]:
    return await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=5))
