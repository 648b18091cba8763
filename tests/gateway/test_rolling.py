"""Rolling summaries of what left a companion's window: coverage without a hole or a double, merging, failures, edits (RS-43 to RS-50)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.errors import ModelBusy
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply
from gateway import trimming, windows
from gateway.saved import deep_gate
from memory import conversations, message_changes, tokens
from memory.database import Database
from memory.recall import summary_rows, uncovered
from memory.recall.kinds import ROLLING, Kind
from memory.recall.summary_rows import NewSummary, State
from memory.schema import job_parts, jobs, people
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import RowsHouse, lines, said, utc_now_at

SMALL = {"messages": 10, "block": 5}


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-09T12:00")
    made = RowsHouse(database, tmp_path, clock, companion=SMALL)
    await made.person()
    yield made
    await made.close()


@pytest.fixture
async def small(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    """The same on SQLite alone, where the store is not the subject."""
    clock.now = utc_now_at("2026-03-09T12:00")
    made = RowsHouse(sqlite, tmp_path, clock, companion=SMALL)
    await made.person()
    yield made
    await made.close()


async def talk(house: RowsHouse, chat: str, count: int, *, first: int = 0) -> None:
    for n in range(first, first + count):
        await house.asks(chat, f"word{n}")


async def left_behind(house: RowsHouse, chat: str, count: int) -> None:
    """`count` messages that left the window, in one transaction."""
    numbers = [(await house.says(chat, f"word{n}")).seq for n in range(count)]
    found = await house.conversation(chat)

    def work(c: sa.Connection) -> None:
        trimming.left(c, found, "root", numbers[0], numbers[-1], house.clock(), into="rolling")
        conversations.move_edge(c, chat, numbers[-1])

    await house.db.write(work)


async def uncovered_count(house: RowsHouse, chat: str) -> int:
    edge = (await house.conversation(chat)).window_edge
    return len(await house.db.read(lambda c: uncovered.waiting(c, chat, ROLLING, last=edge)))


async def everywhere(house: RowsHouse, chat: str, count: int) -> list[str]:
    """The messages that a prompt says nothing of."""
    shown = "\n".join([*await house.live(chat), await house.stands(chat)])
    return [f"word{n}" for n in range(count) if not re.search(rf"\bword{n}\b", shown)]


@pytest.mark.rule("RS-43")
async def test_the_job_is_written_with_the_edge_and_takes_three_blocks_a_run(house: RowsHouse) -> None:
    chat = await house.made()
    await left_behind(house, chat, 40)
    assert await house.job_keys("rolling") == [chat]
    assert house.calls == 0, "nothing is asked before the job runs"
    await house.run_one("rolling")
    assert len(await house.rows(chat, Kind.RECENT)) == 3
    await house.run("rolling")
    assert await uncovered_count(house, chat) == 0
    assert await house.count(job_parts) == 0, "what was paid for is kept no longer than it is needed"


@pytest.mark.rule("RS-44")
async def test_every_message_is_live_extracted_or_summarised_whatever_the_helper_does(house: RowsHouse) -> None:
    chat = await house.made()
    for n in range(60):
        await talk(house, chat, 1, first=n)
        if n % 17 == 16:
            await house.run_one("rolling")
        assert await everywhere(house, chat, n + 1) == [], n
    await house.run("rolling")
    assert await everywhere(house, chat, 60) == []
    assert "not summarised yet" not in await house.stands(chat)


@pytest.mark.rule("RS-43")
async def test_each_block_is_compacted_once_also_when_it_runs_again(small: RowsHouse) -> None:
    """What starts deep memory is the job that `deep_gate` queues for a block."""
    until = {"subscriber_until": date(2026, 12, 31), "role": "user"}
    await small.db.write(lambda c: c.execute(sa.update(people).where(people.c.id == OWNER).values(**until)))
    chat = await small.made("web", kind="web", person_id=OWNER)
    await small.asks(chat, "word0")
    gate = await small.db.read(lambda c: deep_gate.gate_of(c, _chat(c, chat), small.clock()))
    assert gate.is_open
    await talk(small, chat, 24, first=1)
    assert await small.job_keys("deep-memory") == [], "not before it is summarised"
    await small.run("rolling")
    blocks = await small.rows(chat, Kind.RECENT, Kind.CONSOLIDATED, states=tuple(State))
    ends = {row.last_seq for row in blocks if row.kind is Kind.RECENT}
    assert sorted(await small.job_keys("deep-memory")) == sorted(f"{chat}:{end}" for end in ends)
    await small.db.write(lambda c: trimming.enqueue(c, trimming.rolling_job(chat, "root"), again=True))
    await small.run("rolling")
    assert len(await small.job_keys("deep-memory")) == len(ends)


@pytest.mark.rule("RS-45")
async def test_four_become_one_and_sixteen_one_long_term_and_the_inputs_can_come_back(house: RowsHouse) -> None:
    chat = await house.made()
    await left_behind(house, chat, 15)
    await house.run("rolling")
    assert [row.kind for row in await house.rows(chat)] == [Kind.RECENT] * 3
    await talk(house, chat, 16, first=15)
    await house.run("rolling")
    kinds = [row.kind for row in await house.rows(chat)]
    assert kinds[0] is Kind.CONSOLIDATED
    await talk(house, chat, 59, first=31)
    await house.run("rolling")
    rows = await house.rows(chat)
    assert [row.kind for row in rows] == [Kind.LONG_TERM]
    assert await house.stood_for(chat) == sorted(set(await house.stood_for(chat)))
    below = await house.db.read(lambda c: summary_rows.inputs_of(c, rows[0].id))
    assert [(row.kind, row.state) for row in below] == [(Kind.CONSOLIDATED, State.INACTIVE)] * 4
    assert all(row.text for row in below), "the inputs stay stored"


@pytest.mark.rule("RS-46")
async def test_another_chat_sees_none_of_them(small: RowsHouse) -> None:
    one, other = await small.made(), await small.made("discord")
    await left_behind(small, one, 10)
    await small.run("rolling")
    assert "word0" in await small.stands(one)
    assert await small.stands(other) == ""


@pytest.mark.rule("RS-43")
async def test_after_the_context_was_emptied_for_good_nothing_of_before_stands_or_is_summarised(small: RowsHouse) -> None:
    chat = await small.made()
    await left_behind(small, chat, 12)
    await small.run_one("rolling")
    edge = (await small.conversation(chat)).window_edge
    await small.change(chat, settings={windows.CLEARED: edge})
    assert await small.stands(chat) == ""
    calls = small.calls
    await small.db.write(lambda c: trimming.enqueue(c, trimming.rolling_job(chat, "root"), again=True))
    await small.run("rolling")
    assert small.calls == calls
    await talk(small, chat, 11)
    await small.run("rolling")
    assert "word0" in await small.stands(chat)


@pytest.mark.rule("RS-47", "RS-49")
async def test_a_helper_that_fails_twice_leaves_nothing_out_and_nothing_double(house: RowsHouse) -> None:
    chat = await house.made()
    await left_behind(house, chat, 10)
    answers: list[Reply] = [[Fail(ModelBusy("down"))], [Fail(ModelBusy("down"))]]

    def script(request: ModelRequest) -> Reply:
        return answers.pop(0) if answers else said(request)

    house.script = script
    for _ in range(3):
        assert await uncovered_count(house, chat) == 10
        await house.run("rolling")
        house.clock.advance(hours=2)
    assert await uncovered_count(house, chat) == 0
    found = await house.stood_for(chat)
    assert len(found) == len(set(found)) == 10


@pytest.mark.rule("RS-48", "RS-195")
async def test_an_edited_row_is_input_of_later_merges_and_is_not_rewritten(small: RowsHouse) -> None:
    chat = await small.made()
    await left_behind(small, chat, 15)
    await small.run("rolling")
    mine = (await small.rows(chat))[0]
    await small.db.write(lambda c: summary_rows.edit(c, mine.id, small.clock(), text="She prefers green tea"))
    await talk(small, chat, 16, first=15)
    await small.run("rolling")
    [merged, *_] = await small.rows(chat)
    assert merged.kind is Kind.CONSOLIDATED
    assert "She prefers green tea" in merged.text
    kept = await small.db.read(lambda c: summary_rows.one(c, mine.id))
    assert kept is not None
    assert (kept.text, kept.state) == ("She prefers green tea", State.INACTIVE)


@pytest.mark.rule("RS-50", "RS-66")
async def test_however_long_the_talk_the_text_stays_inside_its_share(small: RowsHouse) -> None:
    """400 blocks with summaries of their natural length; a merge that shortens as it was told to."""

    def script(request: ModelRequest) -> str:
        asked = re.search(r"At most (\d+) words", request.messages[0].text)
        return json.dumps({"text": " ".join(["thing"] * (int(asked[1]) if asked else 60))})

    small.script = script
    await small.set(context={"memory_budget": 2_000})
    chat = await small.made()
    numbers = [(await small.says(chat, f"word{n}")).seq for n in range(16)]
    now = small.clock()

    def rows(c: sa.Connection) -> None:  # what 400 blocks leave behind: rows of one message each, to be merged
        for _ in range(400):
            new = NewSummary(conversation_id=chat, kind=Kind.RECENT, text=" ".join(["thing"] * 60), sources=[numbers[0]])
            summary_rows.add(c, new, now)

    await small.db.write(rows)
    await left_behind(small, chat, 1)
    await small.run("rolling", limit=100)
    share = 2_000 * 70 // 100
    text = await small.stands(chat)
    assert tokens.count(text) <= share + 60
    assert {row.kind for row in await small.rows(chat)} <= set(ROLLING)


@pytest.mark.rule("RS-194")
async def test_a_message_that_is_edited_while_the_model_is_asked_is_summarised_in_its_new_words(house: RowsHouse) -> None:
    chat = await house.made()
    await left_behind(house, chat, 5)
    first = await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=10)[0])
    edits: list[str] = []

    def script(request: ModelRequest) -> Reply:
        edits.append(lines(request)[0])
        return said(request)

    house.script = script
    paid = house.summarist.of_talk

    async def meanwhile(*given: Any, **named: Any) -> Any:
        answer = await paid(*given, **named)
        if len(edits) == 1:
            await house.db.write(lambda c: message_changes.correct(c, first, "changed", house.clock()))
        return answer

    house.summarist.of_talk = meanwhile  # pyright: ignore[reportAttributeAccessIssue]
    await house.run("rolling")
    assert edits == ["word0", "changed"]
    [row] = await house.rows(chat)
    assert "changed" in row.text
    assert "word0" not in row.text


@pytest.mark.rule("RS-60", "RS-43")
async def test_without_a_usable_model_extracts_stand_and_nothing_is_asked(small: RowsHouse) -> None:
    await small.set(model={"provider": "demo"})
    small.models = type(small.models)(lambda _account: small.model, small.config)
    small.build()
    small.summarist._models = small.models  # pyright: ignore[reportPrivateUsage]
    chat = await small.made()
    await left_behind(small, chat, 5)
    await small.run("rolling")
    assert (await small.job("rolling", chat)).result == {"skipped": "no model"}
    assert small.calls == 0
    assert await everywhere(small, chat, 5) == []


@pytest.mark.rule("RS-168", "RS-192")
@pytest.mark.parametrize("broken", ["no object at all", '{"txt": "?"}', "", '{"text": ""}'], ids=["prose", "other form", "empty", "empty text"])
async def test_an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_parked(small: RowsHouse, broken: str) -> None:
    small.script = lambda _request: broken
    chat = await small.made()
    await left_behind(small, chat, 5)
    await small.run("rolling")
    row = await small.job("rolling", chat)
    assert (row.state, row.error_class, small.calls) == ("parked", "InvalidOutput", 2)
    assert await small.rows(chat) == []
    assert await small.count(job_parts) == 0


@pytest.mark.rule("RS-166", "RS-189")
async def test_a_row_whose_message_was_deleted_is_withheld_at_once_and_says_it_nowhere_after_the_rebuild(house: RowsHouse) -> None:
    chat = await house.made()
    await left_behind(house, chat, 25)
    await house.run("rolling")
    assert {row.kind for row in await house.rows(chat)} == {Kind.CONSOLIDATED, Kind.RECENT}
    gone = (await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=30)))[2]

    def forget(c: sa.Connection) -> None:
        message_changes.forget(c, gone.id)
        trimming.changed(c, chat, gone.seq, gone.seq, house.clock())

    await house.db.write(forget)
    assert not re.search(r"\bword2\b", await house.stands(chat))
    await house.plan()
    await house.run("restate-summaries", "rolling")
    every: Sequence[Any] = await house.rows(chat, states=tuple(State))
    assert not [row.text for row in every if re.search(r"\bword2\b", row.text)]
    stands = await house.stands(chat)
    assert re.search(r"\bword1\b", stands)
    assert await house.count(job_parts) == 0
    assert gone.seq not in await house.stood_for(chat)
    assert len(await house.stood_for(chat)) == 24


@pytest.mark.rule("RS-166")
async def test_a_hand_edited_row_waits_for_a_person_and_is_withheld_after_a_forget(small: RowsHouse) -> None:
    chat = await small.made()
    await left_behind(small, chat, 5)
    await small.run("rolling")
    [mine] = await small.rows(chat)
    await small.db.write(lambda c: summary_rows.edit(c, mine.id, small.clock(), text="my words"))
    first = (await small.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=30)))[0]
    await small.db.write(lambda c: message_changes.forget(c, first.id))
    small.clock.advance(timedelta(hours=1))
    await small.plan()
    await small.run("restate-summaries")
    kept = await small.db.read(lambda c: summary_rows.one(c, mine.id))
    assert kept is not None
    assert (kept.text, kept.state, kept.stale) == ("my words", State.WITHHELD, True)
    assert "my words" not in await small.stands(chat)
    assert await small.db.read(lambda c: c.execute(sa.select(jobs.c.id).where(jobs.c.kind == "restate-summaries")).all()) == []


def _chat(connection: sa.Connection, chat: str) -> conversations.Conversation:
    found = conversations.conversation(connection, chat)
    assert found is not None
    return found
