"""How far the first-start questions have come: kept over restarts, claimed by one turn at a time (WD-31, WD-35)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
import sqlalchemy as sa

from memory import onboarding as rows
from memory.database import Database
from memory.onboarding import Progress, State
from memory.schema import people
from tests.conftest import FakeClock

OWNER = "p-aaaaaaaaaa"


@pytest.fixture
async def db(database: Database, clock: FakeClock) -> Database:
    values = {"id": OWNER, "scope": "root", "created_at": clock()}
    await database.write(lambda connection: connection.execute(sa.insert(people), values))
    return database


async def now_at(db: Database) -> Progress:
    return await db.read(partial(rows.progress, person_id=OWNER))


@pytest.mark.rule("WD-35")
async def test_one_of_many_turns_asks_and_so_on_the_second_day(db: Database, clock: FakeClock) -> None:
    for times in (1, 2):
        seen, today = await now_at(db), clock().date()
        claims = [
            db.write(partial(rows.claim, person_id=OWNER, turn_id=f"t-{number}", today=today, seen=seen, now=clock())) for number in range(6)
        ]
        assert sum(await asyncio.gather(*claims)) == 1
        present = await now_at(db)
        assert (present.state, present.asked, present.asked_on) == (State.ASKED, times, today)
        clock.advance(days=1)


@pytest.mark.rule("WD-35")
async def test_only_the_turn_that_asks_gives_its_claim_back(db: Database, clock: FakeClock) -> None:
    today = clock().date()
    await db.write(partial(rows.claim, person_id=OWNER, turn_id="t-1", today=today, seen=Progress(), now=clock()))
    await db.write(partial(rows.release, person_id=OWNER, turn_id="t-2", now=clock()))
    assert (await now_at(db)).state is State.ASKED
    await db.write(partial(rows.give, person_id=OWNER, fields=["bot_name"], now=clock(), all_of=["bot_name", "style"]))
    await db.write(partial(rows.release, person_id=OWNER, turn_id="t-1", now=clock()))
    present = await now_at(db)
    assert (present.state, present.asked, present.asked_on, present.given) == (State.NEW, 0, None, frozenset({"bot_name"}))


@pytest.mark.rule("WD-35", "WD-31")
async def test_answers_add_up_to_done_and_setup_begins_anew(db: Database, clock: FakeClock) -> None:
    today = clock().date()
    give = partial(rows.give, person_id=OWNER, now=clock(), all_of=["bot_name", "style"])
    await db.write(partial(rows.claim, person_id=OWNER, turn_id="t-1", today=today, seen=Progress(), now=clock()))
    assert (await db.write(partial(give, fields=["style", "timezone"]))).state is State.ASKED
    assert (await db.write(partial(give, fields=["bot_name"]))).state is State.DONE
    await db.write(partial(rows.reopen, person_id=OWNER, now=clock()))
    assert await now_at(db) == Progress(reopened=True, stored=True)
    await db.write(partial(rows.end, person_id=OWNER, state=State.DISMISSED, now=clock()))
    assert (await now_at(db)).state is State.DISMISSED


@pytest.mark.rule("WD-31")
async def test_the_row_holds_names_of_answers_and_goes_with_its_person(db: Database, clock: FakeClock) -> None:
    await db.write(partial(rows.end, person_id=OWNER, state=State.DONE, now=clock()))
    assert (await now_at(db)).stored
    await db.write(lambda connection: connection.execute(sa.delete(people)))
    assert await now_at(db) == Progress()
