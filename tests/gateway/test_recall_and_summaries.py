"""Recall and summaries alone and together, where each stands in a prompt, what serves two places at once, and helper calls that fail (RS-4, RS-14,
RS-74, RS-170)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.errors import ModelBusy
from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Fail, Reply, ScriptedModel
from gateway.jobs.table import JobRow, list_jobs
from gateway.summaries import calendar_look
from memory import blocks
from memory.database import Database
from memory.recall import real_talk
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State
from tests.conftest import FakeClock
from tests.gateway.nights import MODEL, each_said
from tests.gateway.rows_house import RowsHouse, said, utc_now_at
from tests.harness import eventually, running
from tests.talks import asked

FACT, QUESTION = "My sister Kaede opened a bakery in Sapporo.", "what did my sister open in Sapporo?"


def answer(request: ModelRequest) -> Reply:
    if request.purpose == "chat-summary":
        return json.dumps({"text": "They spoke of buses.", "details": []})
    return "A title" if request.purpose != "reply" else f"Re: {len(asked(request))}"


@pytest.mark.rule("RS-14", "RS-170", "RS-10")
@pytest.mark.parametrize("recall", ["on", "off"])
@pytest.mark.parametrize("record", ["full", "recall_only"])
async def test_recall_and_summaries_work_alone_and_together_each_once_in_its_place(tmp_path: Path, recall: str, record: str) -> None:
    model = ScriptedModel(answer)
    own = {
        **MODEL, "channel_profiles": {"web": "companion"}, "companion": {"messages": 6, "block": 2}, "recall": {"enabled": recall, "record": record},
    }  # fmt: skip
    async with running(tmp_path, model, config=own) as gateway:
        chat = await gateway.chat()
        for n, line in enumerate((FACT, *(f"the bus was late {n}" for n in range(6))), 1):
            await gateway.say(chat, line)
            await gateway.answers(chat, n)
        if record == "full":

            async def summarised() -> bool:
                return any(request.purpose == "chat-summary" for request in model.requests)

            await eventually(summarised)
        await gateway.say(chat, QUESTION)
        await gateway.answers(chat, 8)
    replies = [request for request in model.requests if request.purpose == "reply"]
    head, *talk, newest = (message.text for message in replies[-1].messages)
    assert replies[-1].messages[0].role is Role.SYSTEM
    everything = "\n".join((head, *talk, newest))
    assert head.count("[summary of earlier talk") == everything.count("[summary of earlier talk") == (record == "full")
    assert newest.count("[recalled from earlier talk") == everything.count("[recalled from earlier talk") == (recall == "on")
    assert (FACT in newest) is (recall == "on")
    assert newest.endswith(QUESTION)
    assert any(request.purpose == "chat-summary" for request in model.requests) is (record == "full")


@pytest.mark.rule("RS-170")
@pytest.mark.case("AT-29")
async def test_slots_of_the_character_hold_them_and_the_receipt_names_the_slots(tmp_path: Path) -> None:
    model = ScriptedModel(answer)
    own = {
        **MODEL, "channel_profiles": {"web": "companion"}, "companion": {"messages": 6, "block": 2}, "recall": {"enabled": "on"},
        "characters": {"default": {"prompt": "Known: {{recalled_messages}}\nSo far: {{chat_summary}}\nBe kind."}},
    }  # fmt: skip
    async with running(tmp_path, model, config=own) as gateway:
        chat = await gateway.chat()
        for n, line in enumerate((FACT, *(f"the bus was late {n}" for n in range(6))), 1):
            await gateway.say(chat, line)
            await gateway.answers(chat, n)

        async def summarised() -> bool:
            return any(request.purpose == "chat-summary" for request in model.requests)

        await eventually(summarised)
        await gateway.say(chat, QUESTION)
        await gateway.answers(chat, 8)
        turn = (await gateway.messages(chat))[-1]["turn_id"]
        receipt = await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt")
    head, *_, newest = [request for request in model.requests if request.purpose == "reply"][-1].messages
    known, so_far = head.text.partition("Known: ")[2].split("\nSo far: ")
    assert known.startswith("[recalled from earlier talk") and FACT in known
    assert so_far.startswith("[summary of earlier talk") and "\nBe kind." in so_far
    assert "[recalled" not in newest.text and FACT not in newest.text
    assert receipt["places"] == {"summaries": "chat_summary", "recalled": "recalled_messages"}


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-02T12:00")
    made = RowsHouse(database, tmp_path, clock, companion={"messages": 10, "block": 5})
    await made.person()
    yield made
    await made.close()


@pytest.mark.rule("RS-4")
async def test_one_call_serves_the_daily_file_and_the_block_which_no_summary_or_chunk_is_made_of(house: RowsHouse) -> None:
    house.profile, house.script = "assistant", each_said
    chat = await house.made()
    seqs = [(await house.says(chat, f"word{n}.")).seq for n in range(16)]
    await house.leaves(chat, seqs[0], seqs[5])
    await house.run("trim-summary")
    assert house.calls == 1
    [block] = await house.db.read(lambda c: blocks.blocks_of(c, chat))
    assert block.text.splitlines() == [f"Said: word{n}." for n in range(6)]
    assert all(line in house.day("2026-03-02") for line in block.text.splitlines()), "the same text"
    stands = await house.stands(chat)
    assert stands.startswith(blocks.HEAD) and "Said: word0." in stands, "a note, before the first turn that is kept"
    asked_before = len(house.model.requests)
    await house.leaves(chat, seqs[6], seqs[11])
    house.clock.now = utc_now_at("2026-03-03T01:00")
    await house.look()
    await house.run()
    later = house.model.requests[asked_before:]
    assert later and all("Said:" not in message.text for request in later for message in request.messages)
    file = house.day("2026-03-02")
    assert [file.count(f"word{n}.") for n in range(16)] == [1] * 16
    chunked = await house.db.read(lambda c: real_talk.uncut(c, chat))
    assert [each.text for each in chunked] == [f"word{n}." for n in range(16)], "chunks are cut of the log alone"


@pytest.mark.rule("RS-74", "RS-44")
@pytest.mark.parametrize("profile", ["companion", "calendar"])
async def test_every_helper_call_may_fail_once_and_no_row_suffers(house: RowsHouse, profile: str) -> None:
    refused: set[str] = set()

    def once(request: ModelRequest) -> Reply:
        text = request.messages[-1].text
        if text in refused:
            return said(request)
        refused.add(text)
        return Fail(ModelBusy("no"))

    house.profile, house.script = profile, once
    chat = await house.made()
    for n in range(40 if profile == "companion" else 9):
        if profile == "companion":
            await house.asks(chat, f"word{n}.")
        else:
            await house.says(chat, f"word{n}.", at=utc_now_at("2026-03-02T12:00") + timedelta(days=n))
    house.clock.now = utc_now_at("2026-03-12T12:00")
    failures = runs = 0
    while True:
        before = {row.id: (row.text, row.details) for row in await house.rows(chat, states=tuple(State))}
        await house.plan()
        ran = await house.run("rolling", "day-row", "fold", limit=1)
        if not ran:
            break
        runs += 1
        after = {row.id: (row.text, row.details) for row in await house.rows(chat, states=tuple(State))}
        assert before.items() <= after.items(), "earlier rows read as they did"
        shown = "\n".join([*await house.live(chat), await house.stands(chat)])
        assert all(f"word{n}." in shown for n in range(9)), "and the prompt has no hole"
        if waiting := [job for job in await jobs_of(house) if job.error_class]:
            failures += 1
            assert {(job.state, job.error_class) for job in waiting} == {("waiting", "ModelBusy")}
            if profile == "calendar" and any(job.job.kind == "day-row" for job in waiting):
                missing = await house.db.read(lambda c: calendar_look.missing(c, house.config, house.summarist, chat, house.clock()))
                assert "failed: ModelBusy" in {each.reason for each in missing}, "shown, with the way to try again"
        house.clock.advance(hours=7)
        assert runs < 200
    assert failures >= len(refused) / 2 > 3
    rows = await house.rows(chat)
    assert {row.kind for row in rows} & {Kind.RECENT, Kind.WEEK}
    text = "\n".join(row.text for row in rows)
    assert all(f"word{n}." in text for n in range(7))


async def jobs_of(house: RowsHouse) -> list[JobRow]:
    found = await house.db.read(list_jobs)
    return [job for job in found if job.state != "done"]
