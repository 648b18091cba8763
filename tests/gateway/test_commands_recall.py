"""`/memory recall|record|chunks|jobs|doctor|why`, `/summary list|read|forget|rebuild|backfill`, `/context undo` (RS-9 to RS-80, RS-196)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway.jobs.table import Job, enqueue
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import edge_jump, summary_rows
from memory.recall.chunk_views import Seen
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, NewSummary
from memory.schema import turns
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.nights import utc


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


async def chatted(house: CommandHouse, count: int = 10, **who: Any) -> Conversation:
    """A chat in which `count` messages were said, and cut."""
    for at in range(count // 2):
        await house.talk(f"Question {at}", f"Answer {at}", **who)
    chat = await house.chat_of(**{key: value for key, value in who.items() if key in ("by", "group")})
    await house.talk_index.follow(chat.id)
    return chat


async def chunks(house: CommandHouse, chat: Conversation) -> list[Seen]:
    return list((await house.desks.recall.chunks(chat.id, person_id("owen"), limit=100)).rows)


def code(said: str) -> str:
    found = re.search(r"yes (\d{4})", said)
    assert found is not None, said
    return found.group(1)


@pytest.mark.rule("RS-9", "RS-10")
async def test_recall_is_switched_in_a_chat_and_nothing_is_deleted(house: CommandHouse) -> None:
    chat = await chatted(house)
    assert "Recall is on in this chat" in await house.says("/memory recall")
    assert "2 kept passages stay" in await house.says("/memory recall off")
    assert "Recall is off" in await house.says("/memory recall")
    assert len(await chunks(house, chat)) == 2
    assert "Recall is on" in await house.says("/memory recall on")
    assert "on or /memory recall off" in await house.says("/memory recall maybe")


@pytest.mark.rule("RS-12")
async def test_the_record_rule_asks_whether_to_clear_with_a_code_that_is_good_once(house: CommandHouse) -> None:
    chat = await chatted(house)
    assert "Passages and summaries are kept" in await house.says("/memory record")
    assert await house.says("/memory record recall_only") == "Passages are kept of this chat, summaries are not."
    said = await house.says("/memory record none")
    assert "Nothing is kept" in said and "yes " in said
    assert (await house.chat_of()).record == "none"
    wrong = f"{(int(code(said)) + 1) % 10_000:04d}"
    assert "nothing was forgotten" in await house.says(f"/memory record none yes {wrong}")
    assert len(await chunks(house, chat)) == 2
    assert "Forgotten: 2 passages" in await house.says(f"/memory record none yes {code(said)}")
    assert await chunks(house, chat) == []
    assert "nothing was forgotten" in await house.says(f"/memory record none yes {code(said)}")
    assert "with full, recall_only or none" in await house.says("/memory record everything")


@pytest.mark.rule("RS-37", "RS-38")
async def test_chunks_are_listed_in_pages_with_how_they_stand(house: CommandHouse) -> None:
    assert "No passages are kept" in await house.says("/memory chunks")
    chat = await chatted(house, 64)
    said = await house.says("/memory chunks")
    rows = await chunks(house, chat)
    assert f"12, about {sum(row.tokens for row in rows):,} tokens · page 1 of 2" in said
    assert "4 messages wait for a passage." in said
    assert said.count("embedding unavailable") == 10
    assert "There is no embedding model" in said
    assert (await house.says("/memory chunks 2")).count("\n- #") == 2
    assert "that there is" in await house.says("/memory chunks 3")


@pytest.mark.rule("RS-42")
async def test_one_passage_is_forgotten_and_all_are_cleared_each_with_its_own_code(house: CommandHouse) -> None:
    chat = await chatted(house, 20)
    first = (await chunks(house, chat))[0].id
    asked = await house.says(f"/memory chunks forget {first}")
    assert "nothing was forgotten" in await house.says(f"/memory chunks clear yes {code(asked)}")
    assert "is forgotten" in await house.says(f"/memory chunks forget {first} yes {code(asked)}")
    assert "that you may read" in await house.says(f"/memory chunks forget {first}")
    everything = await house.says("/memory chunks clear")
    assert "forgets 3 passages" in everything
    house.clock.advance(minutes=6)
    assert "nothing was forgotten" in await house.says(f"/memory chunks clear yes {code(everything)}")
    assert "3 passages are forgotten" in await house.says(f"/memory chunks clear yes {code(await house.says('/memory chunks clear'))}")
    assert "4 passages are made anew" in await house.says("/memory chunks rebuild")


@pytest.mark.rule("CH-118", "RS-42")
async def test_in_a_group_only_managers_change_anything(house: CommandHouse) -> None:
    await chatted(house, by="uma", group=True)
    for command in ("recall off", "record none", "chunks clear", "chunks rebuild", "chunks forget 1"):
        assert "manage" in await house.says(f"/memory {command}", by="uma", group=True), command
    for command in ("/memory chunks", "/memory jobs", "/memory doctor", "/summary list"):
        assert "manage" not in await house.says(command, by="uma", group=True), command
    assert "Recall is off" in await house.says("/memory recall off", by="mia", group=True)


@pytest.mark.rule("RS-80")
@pytest.mark.parametrize(("text", "line"), [("/memory doctor", "the embedding source does not work"), ("/memory doctor　", "embedding source")])
async def test_the_doctor_prints_the_line_that_fits(house: CommandHouse, text: str, line: str) -> None:
    await chatted(house)
    said = await house.says(text)
    assert line in said
    assert len(said.splitlines()) == 1
    await house.says("/memory recall off")
    assert "Recall is off" in await house.says("/memory doctor")


@pytest.mark.rule("RS-196", "RS-77")
async def test_why_shows_what_was_recalled_without_what_the_asker_may_not_read(house: CommandHouse) -> None:
    chat = await chatted(house)
    seen = (await chunks(house, chat))[0]
    used: list[dict[str, Any]] = [
        {"chunk": number, "messages": [], "from": "2026-03-01T10:00:00+00:00", "to": "2026-03-01T10:04:00+00:00", "tokens": 40}
        for number in (seen.id, 999)
    ]
    report: dict[str, Any] = {"mode": "hybrid", "reason": "", "used": used, "tokens": 80, "ms": 12}
    await receipt(house, chat, {"recall": report})
    said = await house.says("/memory why")
    assert "Recalled: 2 earlier passages, 80 tokens, by meaning and words, 12 ms." in said
    assert said.count("2026-03-01 10:00 – 2026-03-01 10:04") == 1
    assert "1 that you may not read" in said
    for reason, words in (("nothing_relevant", "nothing kept was related"), ("timeout", "took too long"), ("off", "recall is off")):
        await receipt(house, chat, {"recall": {"mode": "none", "reason": reason, "used": [], "tokens": 0, "ms": 1}})
        assert words in await house.says("/memory why"), reason
    await receipt(house, chat, {"recall": {"mode": "text", "reason": "nothing_relevant", "used": [], "tokens": 0, "ms": 1}})
    assert "This is normal" in await house.says("/memory doctor")


async def receipt(house: CommandHouse, chat: Conversation, value: dict[str, Any]) -> None:
    house.clock.advance(seconds=1)
    values = {"id": f"t{house.clock().timestamp()}", "conversation_id": chat.id, "state": "answered", "receipt": value, "started_at": house.clock()}
    await house.do(lambda c: c.execute(sa.insert(turns), {**values, "ended_at": house.clock()}))


@pytest.mark.rule("RS-196")
async def test_jobs_of_this_chat_are_listed_with_their_reasons(house: CommandHouse) -> None:
    chat, other = await chatted(house), await chatted(house, by="uma")
    assert await house.says("/memory jobs") == "No work waits for this chat."
    for of, date in ((chat, "2026-03-05"), (other, "2026-03-06")):
        await house.do(lambda c, of=of, date=date: enqueue(c, Job(kind="day-row", key=f"{of.id}:{date}", payload={"date": date})))
    await house.do(lambda c: c.execute(sa.text("UPDATE jobs SET error_class = 'ModelBusy'")))
    assert await house.says("/memory jobs") == "- summary of the day 2026-03-05: waiting · the model is busy or cannot be reached"


@pytest.mark.rule("RS-47", "RS-48")
async def test_summaries_are_listed_read_forgotten_and_made_anew(house: CommandHouse) -> None:
    assert "There are no summaries" in await house.says("/summary list")
    chat = await chatted(house)
    seqs = [message.seq for message in await house.do(lambda c: conversations.window(c, chat.id, 0))]
    detail = Detail(text="Send the map", kind="promise", due="2026-03-20")
    rows = [
        NewSummary(conversation_id=chat.id, kind=Kind.RECENT, text="They spoke of maps.", sources=seqs[:4]),
        NewSummary(conversation_id=chat.id, kind=Kind.DAY, text="A day of maps.", sources=seqs[4:6], details=(detail,), local_date="2026-03-08"),
    ]
    recent, day = [await house.do(lambda c, row=row: summary_rows.add(c, row, house.clock())) for row in rows]
    listed = await house.says("/summary list")
    assert f"- #{day} · day 2026-03-08: A day of maps." in listed
    assert f"- #{recent} · recent 2026-03-08: They spoke of maps." in listed
    read = await house.says(f"/summary read {day}")
    assert "A day of maps." in read and "- Send the map (promise · 2026-03-20)" in read
    await house.do(lambda c: summary_rows.edit(c, recent, house.clock(), text="They spoke of islands."))
    assert "written by hand" in await house.says("/summary list")
    assert f"/summary rebuild {recent} yes" in await house.says(f"/summary rebuild {recent}")
    assert "It is being made" in await house.says(f"/summary rebuild {recent} yes")
    asked = await house.says(f"/summary forget {day}")
    assert "is forgotten" in await house.says(f"/summary forget {day} yes {code(asked)}")
    assert "Write the number of a summary" in await house.says(f"/summary read {day}")


@pytest.mark.rule("RS-58", "RS-167")
async def test_backfill_does_the_days_of_the_chat_beside_the_daily_files(house: CommandHouse) -> None:
    chat = await chatted(house)
    await house.do(lambda c: conversations.change(c, chat.id, profile="calendar"))
    house.clock.advance(days=2)
    said = await house.says("/summary backfill 3")
    assert "Days of this chat that are being summarised: 2026-03-08." in said
    await house.do(lambda c: conversations.change(c, chat.id, record="none"))
    assert "- 2026-03-08: the record rule forbids it" in await house.says("/summary backfill 3")


@pytest.mark.rule("RS-68")
async def test_the_jump_of_the_context_is_undone(house: CommandHouse) -> None:
    chat = await chatted(house)
    assert "no jump" in await house.says("/context undo")
    await house.do(lambda c: edge_jump.jump(c, chat, chat.last_seq))
    assert "in the context again" in await house.says("/context undo")
    assert (await house.chat_of()).window_edge == 0


@pytest.mark.rule("RS-37", "RS-80")
@pytest.mark.parametrize(("language", "word"), [("ja", "断片"), ("zh", "片段"), ("en", "passages")])
async def test_the_answers_are_in_the_asker_s_language(house: CommandHouse, language: str, word: str) -> None:
    await chatted(house)
    assert word in await house.says("/memory chunks", language=language)


@pytest.mark.rule("RS-160", "RS-80")
@pytest.mark.parametrize(
    ("zone", "told"),
    [("Asia/Tokio", "“Asia/Tokio” is no time zone, so the days of this chat begin by UTC."), ("", ""), (" ", ""), ("Asia/Tokyo", "")],
)
async def test_the_doctor_of_a_chat_tells_of_a_zone_that_is_none(house: CommandHouse, zone: str, told: str) -> None:
    chat = await chatted(house, 2)
    await house.db.write(lambda c: conversations.change(c, chat.id, timezone=zone))
    said = await house.says("/memory doctor")
    assert told in said
    assert ("is no time zone" in said) is bool(told)
