"""`/summary entries …` in chats: a list by pages, making, switching, a yes by number, deleting with a code, settings (RS-81 to RS-92)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.nights import utc


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


async def chatted(house: CommandHouse, count: int = 60, **who: Any) -> Conversation:
    """A chat in which `count` messages were said."""
    for at in range(count // 2):
        await house.talk(f"Question {at}", f"Answer {at}", **who)
    return await house.chat_of(**{key: value for key, value in who.items() if key in ("by", "group")})


async def entries(house: CommandHouse, chat: Conversation, count: int, *, state: State = State.ACTIVE) -> list[int]:
    """So many entries of five messages each."""
    seqs = [message.seq for message in await house.do(lambda c: conversations.window(c, chat.id, 0))]
    rows = [
        NewSummary(
            conversation_id=chat.id, kind=Kind.ENTRY, title=f"Part {at}", text=f"They spoke of {at}.", sources=seqs[5 * at : 5 * at + 5],
            state=state, origin="asked",
        )
        for at in range(count)
    ]  # fmt: skip
    return [await house.do(lambda c, row=row: summary_rows.add(c, row, house.clock())) for row in rows]


async def states(house: CommandHouse, chat: Conversation, by: str = "owen") -> dict[int, bool]:
    found = await house.desks.entries.listing(chat.id, person_id(by))
    return {each.id: each.enabled for each in found.entries}


@pytest.mark.rule("RS-81", "RS-83", "RS-92")
async def test_entries_are_listed_by_pages_with_range_tokens_and_what_has_none(house: CommandHouse) -> None:
    assert "There are no entries yet" in await house.says("/summary entries")
    chat = await chatted(house)
    ids = await entries(house, chat, 11)
    first = await house.says("/summary entries")
    assert "Entries (11 of 11 on; 60 messages in this chat; page 1 of 2):" in first
    assert re.search(rf"- #{ids[0]} · messages 1–5 \(5\) · about \d+ tokens.*: Part 0: They spoke of 0\.", first)
    assert "5 messages are in no entry and are still sent: /summary entries backfill" in first
    assert f"#{ids[10]}" not in first and "/summary entries 2" in first
    assert f"#{ids[10]} · messages 51–55" in await house.says("/summary entries 2")
    assert "/summary entries" in await house.says("/summary entries 3")


@pytest.mark.rule("RS-84")
async def test_several_are_switched_in_one_command(house: CommandHouse) -> None:
    chat = await chatted(house)
    ids = await entries(house, chat, 5)
    assert await house.says(f"/summary entries off {ids[0]} #{ids[2]} {ids[3]}") == "Switched off: 3."
    assert [number for number, on in (await states(house, chat)).items() if not on] == [ids[0], ids[2], ids[3]]
    assert " · off: Part 0" in await house.says("/summary entries")
    assert await house.says("/summary entries on all") == "Switched on: 3."
    assert all((await states(house, chat)).values())
    assert f"There is no entry #{ids[4] + 90} here" in await house.says(f"/summary entries off {ids[1]} {ids[4] + 90}")
    assert all((await states(house, chat)).values()), "one wrong number changes nothing"
    for wrong in ("", "some", "all 3"):
        assert "/summary entries off 3 5" in await house.says(f"/summary entries off {wrong}")


@pytest.mark.rule("RS-85")
@pytest.mark.parametrize(("verb", "said"), [("approve", "counts from now on"), ("decline", "is declined and gone")])
async def test_what_waits_is_settled_by_its_number_once(house: CommandHouse, verb: str, said: str) -> None:
    chat = await chatted(house)
    [number] = await entries(house, chat, 1, state=State.WAITING)
    listed = await house.says("/summary entries")
    assert "1 wait for your yes. Write /summary entries approve N or /summary entries decline N" in listed
    assert f"#{number} " in listed and "waits for a yes" in listed
    assert said in await house.says(f"/summary entries {verb} {number}")
    again = await house.says(f"/summary entries {'decline' if verb == 'approve' else 'approve'} {number}")
    assert "nothing changed" in again
    assert await states(house, chat) == ({number: True} if verb == "approve" else {})
    assert "/summary entries approve 12" in await house.says("/summary entries approve")
    assert "No entry 999 waits" in await house.says("/summary entries approve 999")


@pytest.mark.rule("RS-42", "RS-94")
async def test_an_entry_goes_only_with_its_code_and_its_messages_stay(house: CommandHouse) -> None:
    chat = await chatted(house)
    one, two = await entries(house, chat, 2)
    asked = await house.says(f"/summary entries delete {one}")
    assert "Part 0: They spoke of 0." in asked
    found = re.search(r"yes (\d{4})", asked)
    assert found is not None
    code = found.group(1)
    assert "no longer valid" in await house.says(f"/summary entries delete {two} yes {code}"), "a code is for one entry"
    assert list(await states(house, chat)) == [one, two]
    assert f"Entry {one} is deleted" in await house.says(f"/summary entries delete {one} yes {code}")
    assert f"There is no entry #{one} here" in await house.says(f"/summary entries delete {one} yes {code}")
    assert list(await states(house, chat)) == [two]
    assert (await house.desks.entries.listing(chat.id, person_id("owen"))).messages == 60


@pytest.mark.rule("RS-82")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("4", "at least 5 messages"), ("501", "at most 500 messages"), ("9-2", "lies before its start"), ("70-80", "messages 1 to 60"),
        ("soon", "/summary entries make 1-50"), ("1-", "/summary entries make 1-50"), ("1 2 3", "/summary entries make 1-50"),
    ],
)  # fmt: skip
async def test_a_range_that_cannot_be_is_refused_with_what_to_do(house: CommandHouse, words: str, said: str) -> None:
    await chatted(house)
    assert said in await house.says(f"/summary entries make {words}")


@pytest.mark.rule("RS-82", "RS-85")
@pytest.mark.parametrize("words", ["", "5", "11-20", "11 – 20"])
async def test_making_one_is_begun_and_says_where_it_will_be(house: CommandHouse, words: str) -> None:
    chat = await chatted(house)
    assert await house.says(f"/summary entries make {words}") == "It is being made. I tell you here when it is done."
    assert (await house.desks.entries.listing(chat.id, person_id("owen"))).making == 1
    await house.says("/summary entries review on")
    assert "then waits for your yes" in await house.says("/summary entries make 6")


@pytest.mark.rule("RS-85", "RS-197")
@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("review", [False, True])
async def test_what_was_made_is_told_where_it_was_asked_for_with_its_number(house: CommandHouse, review: bool, group: bool) -> None:
    house.script = lambda _request: '{"title": "Tea", "text": "They drink tea."}'
    who: dict[str, Any] = {"by": "mia", "group": True} if group else {}
    chat = await chatted(house, 10, **who)
    if review:
        await house.says("/summary entries review on", **who)
    await house.says("/summary entries make 8", **who)
    await house.results()
    told = (await house.notices(chat))[-1]
    [number] = await states(house, chat, "mia" if group else "owen")
    if review:
        assert f"Entry {number} is made and waits for your yes: /summary entries approve {number} or /summary entries decline {number}." in told
        assert "counts from now on" in await house.says(f"/summary entries approve {number}", **who)
    else:
        assert f"Entry {number} is made and counts from now on." in told
    assert ("They drink tea." in told) is not group, "in a group it may be for the asker's eyes alone"


@pytest.mark.rule("RS-82", "RS-12")
async def test_why_nothing_was_made_is_told_too(house: CommandHouse) -> None:
    chat = await chatted(house, 10)
    await house.says("/summary entries make 8")
    await house.do(lambda c: conversations.change(c, chat.id, record="none"))
    await house.results()
    assert "No entry was made" in (await house.notices(chat))[-1]


@pytest.mark.rule("RS-86", "RS-90", "RS-92")
async def test_settings_are_told_and_set(house: CommandHouse) -> None:
    chat = await chatted(house)
    assert await house.says("/summary entries auto") == "Entries are made only when asked for."
    assert "after every 7 of your messages" in await house.says("/summary entries auto on 7")
    assert await house.says("/summary entries auto on 201") == "Choose a number from 1 to 200."
    assert "after every 7" in await house.says("/summary entries auto")
    assert await house.says("/summary entries hide") == "Summarised messages are still sent."
    hidden = await house.says("/summary entries hide on 0")
    assert "but for the last 0 of them. 60 messages are in no entry and are still sent." in hidden
    assert "wait for your yes" in await house.says("/summary entries review on")
    assert "count at once" in await house.says("/summary entries review off")
    settings = (await house.desks.entries.listing(chat.id, person_id("owen"))).settings
    assert (settings.automatic, settings.every, settings.hide, settings.tail, settings.review) == (True, 7, True, 0, False)
    for wrong in ("auto maybe", "auto on soon", "hide 5", "review on 5"):
        assert "/summary entries" in await house.says(f"/summary entries {wrong}")


@pytest.mark.rule("RS-81", "RS-82", "RS-84", "RS-85", "RS-86")
async def test_in_a_group_everybody_looks_and_only_managers_change(house: CommandHouse) -> None:
    chat = await chatted(house, by="uma", group=True)
    [number] = await entries(house, chat, 1)
    assert f"#{number}" in await house.says("/summary entries", by="uma", group=True)
    for words in (
        "make 5", f"on {number}", f"off {number}", f"delete {number}", f"approve {number}", f"decline {number}", "auto on", "hide on", "review on",
        "backfill", "stop",
    ):  # fmt: skip
        refused = await house.says(f"/summary entries {words}", by="uma", group=True)
        assert "manage" in refused, (words, refused)
    assert await states(house, chat, "uma") == {number: True}
    assert await house.says(f"/summary entries off {number}", by="mia", group=True) == "Switched off: 1."


@pytest.mark.rule("RS-12", "RS-87")
async def test_backfill_is_begun_and_stopped_and_a_record_rule_forbids_it(house: CommandHouse) -> None:
    chat = await chatted(house)
    assert await house.says("/summary entries stop") == "No backfill is running."
    assert "Entries are being made for what has none" in await house.says("/summary entries backfill")
    assert "The backfill has done 0 of" in await house.says("/summary entries")
    assert await house.says("/summary entries stop") == "It stops. What is done stays."
    assert "The backfill was stopped" in await house.says("/summary entries")
    await house.do(lambda c: conversations.change(c, chat.id, record="none"))
    assert "/memory record full" in await house.says("/summary entries backfill")
    assert "/memory record full" in await house.says("/summary entries make 5")


@pytest.mark.rule("RS-81")
@pytest.mark.parametrize(("language", "word"), [("ja", "まとめはまだありません"), ("zh", "还没有摘要条目"), ("en", "There are no entries yet")])
async def test_the_answers_are_in_the_asker_s_language(house: CommandHouse, language: str, word: str) -> None:
    assert word in await house.says("/summary entries", language=language)
