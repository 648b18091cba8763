"""Saved memories when accounts become one person, when one parts again, when a chat ends and when a person wants something
forgotten (SM-73, SM-78, SM-90, WD-92)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import housekeeping, joining
from gateway.audit import CONSOLE
from gateway.jobs import claims
from gateway.jobs.handling import JobContext
from gateway.jobs.table import enqueue
from gateway.person import Identity
from gateway.saved.forgetting import SavedForgetter
from memory import conversations as talks
from memory import whole_conversations
from memory.database import Database
from memory.forget_match import Held, Wanted
from memory.ids import PersonId, SpaceId
from memory.saved.rows import character_list, global_list
from memory.schema import conversations, identities, people
from memory.scopes import person_scope, space_scope
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, BOB, DEN, GLOBAL, MINE, PLACE, YUKI, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


@pytest.mark.rule("SM-90", "SM-15")
def test_linking_moves_the_rows_and_unlinking_moves_nothing_back(stage: Stage) -> None:
    stage.add("of ann", GLOBAL)
    stage.add("of bob", character_list(BOB, YUKI), pinned=True)
    stage.do(lambda connection: connection.execute(sa.update(people).where(people.c.id == BOB).values(share_private=True)))
    stage.do(lambda connection: joining.join(connection, keep=ANN, gone=BOB, by=CONSOLE, now=stage.clock()))
    assert (stage.texts(GLOBAL), stage.texts(MINE)) == (["of ann"], ["of bob"])
    assert stage.do(lambda connection: connection.execute(sa.select(people.c.share_private).where(people.c.id == ANN)).scalar_one()) is False
    parted = stage.do(lambda connection: part_again(connection, stage.clock()))
    assert (stage.texts(GLOBAL), stage.texts(MINE)) == (["of ann"], ["of bob"])
    assert stage.rows(global_list(parted), character_list(parted, YUKI)) == []


@pytest.mark.rule("SM-73")
async def test_the_journal_ends_with_its_chat_and_after_some_days(stage: Stage, tmp_path: Path) -> None:
    stage.save("of a chat that is deleted", by=stage.hand("t-1"))
    stage.do(lambda connection: whole_conversations.delete(connection, "c-1"))
    assert not stage.undo("t-1")
    stage.save("long ago", by=stage.hand("t-2"))
    stage.clock.advance(days=8)
    stage.save("a week later", by=stage.hand("t-3"))
    job = housekeeping.daily(stage.clock())
    stage.do(lambda connection: enqueue(connection, job, now=stage.clock()))
    claim = stage.do(lambda connection: claims.claim(connection, "worker", [housekeeping.KIND], now=stage.clock()))
    assert claim is not None
    sweep = housekeeping.Housekeeping(db=stage.db, attachments_folder=tmp_path, clock=stage.clock, journal_days=lambda: 7)
    assert (await sweep.run(claim.row.job, JobContext(stage.db, claim, stage.clock))).output["memory_journal"] == 1
    assert not stage.undo("t-2")
    assert stage.undo("t-3")


def part_again(connection: sa.Connection, now: datetime) -> PersonId:
    account = {"channel": "telegram", "account": "main"}
    connection.execute(sa.insert(identities), {**account, "person_id": ANN, "platform_user_id": "7", "created_at": now})
    row = {**account, "id": "c-1", "key": "telegram:main:7", "kind": "dm", "person_id": ANN, "created_at": now, "updated_at": now}
    connection.execute(sa.insert(conversations), row)
    chat = talks.conversation(connection, "c-1")
    assert chat is not None
    who = Identity(channel="telegram", account="main", platform_user_id="7", name="ann")
    return joining.part(connection, who, chat, by=CONSOLE, now=now)


@pytest.mark.rule("WD-92", "SM-78", "SM-90")
@pytest.mark.parametrize(("row", "wish"), [("Loves Marzipan", "marzipan"), ("マジパンが大好き", "マジパン"), ("喜欢杏仁糖", "杏仁糖")])
async def test_what_a_person_wants_forgotten_goes_from_rows_and_journal_for_good(stage: Stage, row: str, wish: str) -> None:
    forgetter = SavedForgetter(db=stage.db, clock=stage.clock)
    wanted = Wanted.of(wish)
    assert wanted is not None
    held = Held.of(wanted, (), ())
    mine, scope = stage.add(row, pinned=True).memory, person_scope(PersonId(ANN))
    assert mine is not None
    stage.save("something else", GLOBAL)
    evicted = stage.tool_row(f"{row}!")
    stage.delete(evicted)
    stage.add(row, PLACE)
    stage.add(row, global_list(BOB))
    assert list(await forgetter.find(scope, held)) == [row]
    assert await forgetter.forget(scope, held) == 1
    assert await forgetter.forget(scope, held) == 0
    assert (stage.texts(MINE), stage.texts(GLOBAL)) == ([], ["something else"])
    assert not stage.undo().restored
    assert (stage.texts(PLACE), stage.texts(global_list(BOB))) == ([row], [row])
    assert await forgetter.forget(space_scope(SpaceId(DEN)), held) == 1
    assert stage.texts(PLACE) == []
