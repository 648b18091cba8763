"""Every kind of job that makes memory of the talk, killed behind each durable step on both databases, and run again (AT-13, AT-14)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from gateway import trimming
from gateway.jobs.table import enqueue, list_jobs
from gateway.recall.talk_indexing import TalkIndexing
from memory import blocks, conversations, message_changes, whole_conversations
from memory.database import Database
from memory.recall import chunk_store
from memory.recall.summary_rows import State
from memory.schema import job_parts, jobs, outbox
from tests.conftest import FakeClock
from tests.gateway.nights import each_said
from tests.gateway.rows_house import RowsHouse, said, utc_now_at
from tests.gateway.test_summary_kills import Killed, MortalDatabase, Steps

COMPANION = {"messages": 10, "block": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`kinds`: of its jobs; `talk` fills a chat, `work` does everything that is due; `least`: durable steps that there are at least."""

    profile: str
    kinds: tuple[str, ...]
    talk: Callable[[RowsHouse, str], Awaitable[None]]
    work: Callable[[RowsHouse], Awaitable[None]]
    least: int


def work_of(*kinds: str) -> Callable[[RowsHouse], Awaitable[None]]:
    async def work(house: RowsHouse) -> None:
        house.clock.now = max(house.clock.now, utc_now_at("2026-03-10T10:00"))
        await house.plan()
        while await house.run(*kinds):
            await house.plan()

    return work


async def leaving(house: RowsHouse, chat: str) -> None:
    numbers = [(await house.says(chat, f"word{n}")).seq for n in range(25)]
    found = await house.conversation(chat)

    def leave(c: sa.Connection) -> None:
        into = "rolling" if house.profile == "companion" else "blocks"
        trimming.left(c, found, "root", numbers[0], numbers[-1], house.clock(), into=into)
        conversations.move_edge(c, chat, numbers[-1])

    await house.db.write(leave)


async def days(house: RowsHouse, chat: str) -> None:
    for day in range(2, 10):
        await house.says(chat, f"on the {day}th", at=utc_now_at(f"2026-03-{day:02}T12:00"))


async def edited(house: RowsHouse, chat: str) -> None:
    await days(house, chat)
    await work_of("day-row", "fold")(house)
    house.clock.now = utc_now_at("2026-03-10T12:00")
    found = await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=50))
    await house.db.write(lambda c: message_changes.correct(c, found[2], "corrected", house.clock()))
    await house.db.write(lambda c: message_changes.forget(c, found[5].id))
    house.clock.now = utc_now_at("2026-03-10T13:00")


KINDS: Mapping[str, Kind] = {
    "rolling": Kind(profile="companion", kinds=("rolling",), talk=leaving, work=work_of("rolling"), least=8),
    "days and folds": Kind(profile="calendar", kinds=("day-row", "fold"), talk=days, work=work_of("day-row", "fold"), least=12),
    "restated": Kind(profile="calendar", kinds=("restate-summaries",), talk=edited, work=work_of("restate-summaries", "fold"), least=3),
    "trimmed": Kind(profile="assistant", kinds=("trim-summary",), talk=leaving, work=work_of("trim-summary"), least=3),
}


@pytest.fixture
async def mortal(database: Database) -> AsyncGenerator[MortalDatabase]:
    """The same store as a process has it that can be killed behind a write."""
    made = MortalDatabase(database.url.render_as_string(hide_password=False), Steps())
    yield made
    await made.close()


@asynccontextmanager
async def living(db: Database, folder: Path, clock: FakeClock, profile: str) -> AsyncGenerator[RowsHouse]:
    """A process over a store."""
    house = RowsHouse(db, folder, clock, profile=profile, companion=COMPANION)
    house.script = lambda request: each_said(request) if request.purpose == "summary" else said(request)
    try:
        yield house
    finally:
        await house.close()


async def state(house: RowsHouse, chat: str) -> object:
    """Everything that must come out the same: rows with their words, what they stand for, what stands in the prompt, and no part that is left."""
    rows = [(row.kind, row.state, row.text, row.local_date, row.part, row.stale) for row in await house.rows(chat, states=tuple(State)) if row.text]
    numbers = await house.stood_for(chat)
    standing = await house.db.read(lambda c: blocks.standing(c, chat).text)
    first = min(numbers, default=0)
    parts = await house.db.read(lambda c: c.execute(_PARTS, {"of": f"{chat}%"}).scalar_one())
    return sorted(map(str, rows)), [n - first for n in numbers], await house.stands(chat), standing, parts


def words(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


_PARTS = sa.select(sa.func.count()).select_from(job_parts.join(jobs, jobs.c.id == job_parts.c.job_id)).where(jobs.c.key.like(sa.bindparam("of")))


@pytest.mark.slow
@pytest.mark.rule("RS-75", "RS-191", "RS-195", "RS-190")
@pytest.mark.case("AT-13", "K20", "K23", "K39")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_killed_behind_any_step_it_ends_the_same_and_pays_for_nothing_twice(
    mortal: MortalDatabase, tmp_path: Path, clock: FakeClock, kind: Kind
) -> None:
    steps = mortal.steps
    wanted: object = None
    calls, deadly, killed = 0, 0, True
    while killed or deadly < 2:
        clock.now, killed = utc_now_at("2026-03-09T12:00"), False
        async with living(mortal, tmp_path, clock, kind.profile) as first, living(mortal, tmp_path, clock, kind.profile) as second:
            if not deadly:
                await first.person()
            chat = await first.made()
            await kind.talk(first, chat)
            before = first.calls
            steps.count, steps.deadly = 0, deadly
            try:
                await kind.work(first)
            except Killed:
                killed = True
            steps.deadly = -1
            for _ in range(3):
                clock.advance(timedelta(seconds=130))
                await kind.work(second)
            found = await state(second, chat)
            wanted, calls = wanted or found, calls or first.calls - before
            assert found == wanted, f"killed behind step {deadly}"
            asked, again = (list(map(words, each)) for each in (first.model.requests[before:], second.model.requests))
            assert {*asked} & {*again} <= {*asked[-1:]}, f"behind step {deadly}: only the answer that was on its way is asked for again"
            assert len(asked) + len(again) <= calls + 1
            await second.db.write(lambda c, chat=chat: whole_conversations.delete(c, chat))
        deadly += 1
    assert deadly > kind.least


@pytest.mark.slow
@pytest.mark.rule("RS-191", "RS-195", "RS-197")
@pytest.mark.case("AT-14", "AT-33", "K31")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_a_second_run_asks_no_model_and_changes_nothing(sqlite: Database, tmp_path: Path, clock: FakeClock, kind: Kind) -> None:
    clock.now = utc_now_at("2026-03-09T12:00")
    async with living(sqlite, tmp_path, clock, kind.profile) as house:
        await house.person()
        chat = await house.made()
        await kind.talk(house, chat)
        await kind.work(house)
        before, calls = await state(house, chat), house.calls
        assert calls
        ran = await again(house, kind.kinds)
        assert {each.split()[0] for each in ran} == set(kind.kinds)
        assert (await state(house, chat), house.calls) == (before, calls)
        assert await house.count(outbox) == 0, "no job says anything to anybody"


async def again(house: RowsHouse, kinds: tuple[str, ...]) -> list[str]:
    """Every job of these kinds once more, as if nobody knew that it is done."""

    def work(c: sa.Connection) -> None:
        for row in list_jobs(c, limit=1_000):
            if row.job.kind in kinds:
                enqueue(c, row.job, again=True, now=house.clock())

    await house.db.write(work)
    house.clock.advance(minutes=1)
    return await house.run(*kinds)


@pytest.mark.rule("RS-16", "RS-191")
@pytest.mark.case("AT-13", "AT-14")
async def test_chunks_killed_behind_any_step_are_made_once(mortal: MortalDatabase, tmp_path: Path, clock: FakeClock) -> None:
    steps = mortal.steps
    async with living(mortal, tmp_path, clock, "assistant") as house:
        await house.person()
        chat = await house.made()
        for step in (1, 2, -1, -1):
            await house.says(chat, f"word {step}")
            for n in range(7):
                await house.says(chat, f"word {step} {n}")
            steps.count, steps.deadly = 0, step
            made = TalkIndexing(
                db=mortal, clock=clock, embedder=None, home=None, gap=lambda: timedelta(hours=6), record=lambda: "full"
            )  # fmt: skip
            try:
                await made.follow(chat)
            except Killed:
                pass
            steps.deadly = -1
        stored = await mortal.read(lambda c: chunk_store.of_chat(c, chat))
        held = [seq for chunk in stored for seq in chunk.seqs]
        assert len(held) == len(set(held)) == 30
        await made.follow(chat)
        assert [chunk.id for chunk in await mortal.read(lambda c: chunk_store.of_chat(c, chat))] == [chunk.id for chunk in stored]


