"""Summary rows: what each stands for, what it was made from, and that nothing pushes another row out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory import conversations
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, NewSummary, State, Summary

NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)


async def chat(database: Database, number: int = 1) -> str:
    return await database.write(lambda c: conversations.create_conversation(c, now=NOW, key=f"web::{number}", channel="web", account="", kind="web"))


async def make(database: Database, of: str, sources: range, kind: Kind = Kind.RECENT, **more: object) -> int:
    new = NewSummary(conversation_id=of, kind=kind, text=f"{kind} {sources.start}", sources=sources, **more)  # pyright: ignore[reportArgumentType]
    return await database.write(lambda c: summary_rows.add(c, new, NOW))


async def sent(database: Database, of: str) -> list[Summary]:
    return await database.read(lambda c: summary_rows.of_chat(c, of))


@pytest.mark.rule("RS-45", "RS-195")
async def test_inputs_of_a_merge_leave_the_prompt_and_stay_recoverable(database: Database) -> None:
    of = await chat(database)
    recents = [await make(database, of, range(n, n + 10)) for n in (1, 11, 21, 31)]
    merged = await make(database, of, range(1, 41), Kind.CONSOLIDATED, inputs=recents)

    assert [row.id for row in await sent(database, of)] == [merged]
    assert [row.id for row in await database.read(lambda c: summary_rows.inputs_of(c, merged))] == recents
    await database.write(lambda c: summary_rows.set_state(c, recents, State.ACTIVE, NOW))
    assert {row.id for row in await sent(database, of)} == {merged, *recents}


@pytest.mark.rule("RS-166", "RS-195")
@pytest.mark.parametrize("kind", [Kind.CONSOLIDATED, Kind.YEAR, Kind.ENTRY])
async def test_what_is_made_of_rows_that_wait_to_be_made_anew_waits_for_it_too(database: Database, kind: Kind) -> None:
    of = await chat(database)
    told, edited, by_hand = [await make(database, of, range(n, n + 10)) for n in (1, 11, 21)]
    await database.write(lambda c: summary_rows.edit(c, by_hand, NOW, text="mine"))
    await database.write(lambda c: summary_rows.mark_changed(c, of, 15, 25, forgotten=False))
    stale = await make(database, of, range(1, 21), kind, inputs=[told, edited])
    others = await make(database, of, range(21, 31), kind, inputs=[by_hand])
    assert {row.id: row.stale for row in await sent(database, of)} == {stale: True, others: False}, "a person's words hold"


@pytest.mark.rule("RS-46", "RS-159")
async def test_a_row_stands_for_its_messages_by_number_and_in_its_chat_alone(database: Database) -> None:
    of, other = await chat(database), await chat(database, 2)
    row = await make(database, of, range(5, 9))
    assert await sent(database, other) == []
    assert await database.read(lambda c: summary_rows.sources_of(c, [row])) == {row: [5, 6, 7, 8]}


@pytest.mark.rule("RS-159")
async def test_a_second_row_of_one_date_is_part_two(database: Database) -> None:
    of = await chat(database)
    first = await make(database, of, range(1, 3), Kind.DAY, local_date="2026-03-08", zone="Asia/Tokyo", rollover_hour=4)
    second = await make(database, of, range(3, 5), Kind.DAY, local_date="2026-03-08", zone="Europe/Berlin")
    whisper = await make(database, of, range(5, 6), Kind.DAY, local_date="2026-03-08", audience="p:1")
    found = {row.id: row for row in await sent(database, of)}
    assert [found[each].part for each in (first, second, whisper)] == [0, 2, 0]
    assert (found[first].zone, found[first].rollover_hour) == ("Asia/Tokyo", 4)


@pytest.mark.rule("RS-48", "RS-54")
async def test_what_a_person_edits_is_theirs(database: Database) -> None:
    of = await chat(database)
    row = await make(database, of, range(1, 3), Kind.DAY, details=(Detail(text="call Aiko", kind="promise", due="2026-03-10"),))
    later = NOW + timedelta(hours=1)
    await database.write(lambda c: summary_rows.mark_changed(c, of, 1, 1, forgotten=False))
    edited = await database.write(lambda c: summary_rows.edit(c, row, later, text="猫の話", details=(Detail(text="シロ"),)))
    assert edited is not None
    assert (edited.text, edited.details, edited.hand_edited, edited.stale, edited.updated_at) == (
        "猫の話",
        (Detail(text="シロ"),),
        True,
        False,
        later,
    )
    kept = await database.write(lambda c: summary_rows.edit(c, row, later, title="cats"))
    assert kept is not None
    assert (kept.text, kept.title, kept.details) == ("猫の話", "cats", (Detail(text="シロ"),))
    assert await database.write(lambda c: summary_rows.edit(c, row + 1, later, text="x")) is None
