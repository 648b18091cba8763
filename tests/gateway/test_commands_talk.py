"""Commands about the context of a chat, and about who may be told what of the house (sections 3 and 9 of the workspace rules)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway import audit
from gateway.chat_reach import ChatReach
from gateway.config import Config
from gateway.language import say
from gateway.logs import Redactor
from gateway.overrides import NotSettable, applied, effective, parsed, settable, stored
from gateway.version import VERSION
from memory import blocks, conversations, coverage
from memory.database import Database
from memory.ids import PersonId
from memory.schema import jobs
from memory.scopes import Scope
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.nights import each_said
from tests.harness import Running, eventually, running


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def both(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    """On both databases."""
    async with command_house(database, tmp_path, clock) as made:
        yield made


async def nobody_manages(_scope: Scope, _ids: frozenset[str]) -> frozenset[str]:
    return frozenset()


async def turns(house: CommandHouse, count: int, **who: object) -> None:
    for number in range(count):
        await house.talk(f"question {number}", f"answer {number}", **who)


# -- the context ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-36", "WD-46")
async def test_context_says_what_is_used_and_what_leaves_next(house: CommandHouse) -> None:
    await turns(house, 19)
    said = await house.says("/context")
    assert said.splitlines()[0].startswith("The context holds 19 of 20 turns and about ")
    assert "Nothing leaves with the next message." in said
    await turns(house, 1)
    assert "With the next message the oldest 10 turns leave" in await house.says("/context")
    chat = await house.chat_of()
    await house.do(partial(blocks.put_extract, conversation_id=chat.id, first=1, last=0, text="Ana lives in Kyoto", now=house.clock()))
    assert "A summary of earlier talk stands before them: about " in await house.says("/context")


@pytest.mark.rule("RS-1", "RS-67")
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
async def test_context_names_the_limits_of_the_chat_s_own_profile(house: CommandHouse, language: str) -> None:
    await turns(house, 3)
    chat = await house.chat_of()
    told: dict[str, str] = {}
    for profile in ("assistant", "companion", "calendar"):
        await house.do(lambda c, profile=profile: conversations.change(c, chat.id, profile=profile))
        told[profile] = await house.says("/context", language=language)
    assert " 20 " in told["assistant"] and "50,000" in told["assistant"]
    assert "companion" in told["companion"] and " 50 " in told["companion"] and "50,000" not in told["companion"]
    assert "calendar" in told["calendar"] and "50,000" not in told["calendar"]
    tail = {"en": "the last 10 messages", "ja": "最後の 10 件", "zh": "最后 10 条"}
    assert tail[language] in told["calendar"]
    assert all("60 %" in each for each in told.values())


@pytest.mark.rule("WD-42", "WD-50")
async def test_compact_keeps_two_turns_and_summarises_the_rest_also_to_the_day(both: CommandHouse) -> None:
    await turns(both, 5)
    assert (await both.says("/compact")).startswith("3 turns left the context; the last 2 stay.")
    chat = await both.chat_of()
    assert [message.text for message in await both.do(partial(conversations.window, conversation_id=chat.id, edge=chat.window_edge))] == [
        "question 3", "answer 3", "question 4", "answer 4",
    ]  # fmt: skip
    assert both.woken == 1
    both.script = each_said
    await both.run()
    assert "question 0" in both.day("2026-03-14")
    assert "question 4" not in both.day("2026-03-14")
    assert "There is nothing to shorten" in await both.says("/compact")


async def test_compact_lets_nothing_leave_that_was_not_answered(house: CommandHouse) -> None:
    await turns(house, 3)
    await house.receive(house.event("still waiting"))
    await turns(house, 4)
    await house.says("/compact")
    chat = await house.chat_of()
    kept = [message.text for message in await house.do(partial(conversations.window, conversation_id=chat.id, edge=chat.window_edge))]
    assert "still waiting" in kept


@pytest.mark.case("N17")
async def test_clear_empties_the_context_for_good_and_the_log_stays(house: CommandHouse) -> None:
    await turns(house, 4)
    await house.says("/compact")
    assert await house.says("/clear") == "The context is empty. What was said before stays in the log."
    chat = await house.chat_of()  # read anew from the store, as after a restart
    assert await house.do(partial(conversations.window, conversation_id=chat.id, edge=chat.window_edge)) == []
    assert (await house.do(partial(blocks.standing, conversation_id=chat.id))).text == "", "no block stands for what was cleared"
    await house.run()
    assert (await house.do(partial(blocks.standing, conversation_id=chat.id))).text == "", "nor does one come back when its job ends"
    log = await house.do(partial(conversations.page, conversation_id=chat.id, before=2**60, limit=50))
    assert any(message.text == "question 0" for message in log)


@pytest.mark.case("N17", "SC-26")
async def test_a_new_conversation_leaves_the_old_one_to_be_summarised_and_keeps_its_settings(house: CommandHouse) -> None:
    await house.talk("the cat is called Shiro", "Noted.")
    old = await house.chat_of()
    await house.says("/memory off")
    await house.says("/new another matter")
    fresh = await house.chat_of()
    assert fresh.id != old.id
    assert fresh.title == "another matter"
    assert not fresh.memory_on, "who wanted no memory here still wants none"
    reach, me = ChatReach(db=house.db, managers=nobody_manages), await house.persons.person(PersonId(person_id("owen")))
    assert me is not None
    assert {each.chat.id for each in await reach.of(me)} == {old.id, fresh.id}, "both stay listed"
    assert (await reach.open(me, old.id)).chat.id == old.id
    said = await house.do(partial(conversations.page, conversation_id=old.id, before=2**62, limit=10))
    assert [message.text for message in said][:2] == ["the cat is called Shiro", "Noted."]
    left = await house.do(partial(coverage.uncovered, scope="root"))
    assert [talk.text for talk in left] == ["the cat is called Shiro", "Noted."]
    assert {talk.conversation_id for talk in left} == {old.id}


async def test_clear_stops_the_answer(house: CommandHouse) -> None:
    await house.talk("hello", "hi")
    running = await house.begin_turn()
    await house.says("/clear")
    assert (running.stopped, running.discarded) == (True, True)


# -- settings -----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-119")
async def test_a_value_set_by_command_lies_over_the_file_and_is_shown_with_its_source(both: CommandHouse) -> None:
    assert (await both.says("/config")).endswith("None is set.")
    assert '`summary.time` = `"23:55"` (default)' in await both.says("/config summary")
    assert '`timezone` = `"UTC"` (from the file)' in await both.says("/config timezone")
    assert await both.says("/config summary.time 22:00") == '- `summary.time` = `"22:00"` (set here; default "23:55")'
    assert both.house.config().summary.time == "22:00"
    assert await both.do(stored) == {"summary.time": "22:00"}
    assert "22:00" in await both.says("/config")
    assert "(default)" in await both.says("/config summary.time -")
    assert both.house.config().summary.time == "23:55"
    assert both.house.reloads == 2
    assert [(entry.action, entry.target) for entry in await both.do(partial(audit.newest, limit=5))] == [
        ("config.unset", "summary.time"), ("config.set", "summary.time"),
    ]  # fmt: skip


@pytest.mark.rule("WD-119")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("summary.time 25:00", "was not set"),
        ("agent_max_context_turns many", "wanted a whole number from 1 to 1000"),
        ("agent_max_context_turns 100000", "from 1 to 1000"),
        ("model.api_key sk-secret", "is set in the file only"),
        ("models.x.name gpt", "is set in the file only"),
        ("data_dir /tmp", "takes effect with a start only"),
        ("sumary.time 22:00", "There is no key sumary.time. did you mean"),
        ("context 5", "is a section"),
        ("helper_model nobody", 'there is no model account "nobody"'),
        ("summary.time -", "was not set here"),
    ],
)
async def test_what_the_file_would_refuse_is_refused_here_too(house: CommandHouse, line: str, said: str) -> None:
    assert said in await house.says(f"/config {line}")
    assert await house.do(stored) == {}
    assert house.house.reloads == 0


@pytest.mark.rule("WD-119", "WO-64")
async def test_secrets_are_masked(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    model = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted", "api_key": "sk-very-secret"}}
    async with command_house(sqlite, tmp_path, clock, **model) as house:
        assert '`model.api_key` = `"***"` (from the file)' in await house.says("/config model")
        assert "sk-very-secret" not in await house.says("/config model.api_key")


def test_an_override_that_holds_no_more_is_left_out_and_named() -> None:
    config, left_out = applied(Config(), {"summary.time": "22:00", "agent_max_context_turns": 0, "gone.key": 1, "knowledge": False})
    assert (config.summary.time, config.knowledge, config.agent_max_context_turns) == ("22:00", False, 20)
    assert set(left_out) == {"agent_max_context_turns", "gone.key"}
    assert [parsed(text) for text in ("22:00", "5", "true", '["/"]', "null")] == ["22:00", 5, True, ["/"], None]
    assert settable("dream.notify") == ("dream", "notify")
    with pytest.raises(NotSettable):
        effective(Config(), {}, "models.x")


async def test_logs_show_the_last_lines_without_secrets(house: CommandHouse) -> None:
    assert await house.says("/logs") == "Nothing was logged yet."
    redactor = Redactor()
    redactor.know({"hunter22"})
    house.logs.addFilter(redactor)
    log = logging.getLogger("test of the tail")
    log.setLevel(logging.INFO)
    log.addHandler(house.logs)
    try:
        for number in range(60):
            log.info("line %s with hunter22", number)
    finally:
        log.removeHandler(house.logs)
    lines = (await house.says("/logs 3")).splitlines()
    assert lines[0] == lines[-1] == "```"
    assert [line.split()[-3:] for line in lines[1:-1]] == [[str(number), "with", "***"] for number in (57, 58, 59)]
    assert len((await house.says("/logs 9999")).splitlines()) == 52
    assert len((await house.says("/logs")).splitlines()) == 22
    assert "/logs" in await house.says("/logs many")


async def test_a_restart_is_asked_for_once_and_written_down(house: CommandHouse) -> None:
    assert await house.says("/restart") == "I finish what runs and start again."
    assert house.restarts == [True]
    assert [entry.action for entry in await house.do(partial(audit.newest, limit=5))] == ["gateway.restart"]
    assert await house.says("/restart", by="ada") == "door: role"


@pytest.mark.rule("WD-35")
@pytest.mark.case("N14")
async def test_setup_is_the_owners_in_the_own_private_chat(house: CommandHouse) -> None:
    assert "first-start questions" in await house.says("/setup")
    assert await house.says("/setup", group=True) == "/setup works in a private chat with me only."
    await house.says("/memory off")
    assert "owner's private chat" in await house.says("/setup"), "a chat without memory stores no answers"


async def test_no_job_is_made_by_a_command_of_the_talk(house: CommandHouse) -> None:
    await turns(house, 1)
    for line in ("/context", "/clear", "/busy queue", "/persona -", "/why", "/last"):
        await house.says(line)
    assert await house.do(lambda connection: connection.execute(sa.select(jobs.c.id)).all()) == []


@pytest.mark.parametrize(("said", "language"), [("ありがとう、助かった", "ja"), ("谢谢你", "zh"), ("thank you", "en")])
async def test_a_command_is_answered_in_the_language_of_the_talk(tmp_path: Path, said: str, language: str) -> None:
    async with running(tmp_path, ScriptedModel(lambda _request: "ok")) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, said)
        await gateway.answers(chat)
        await gateway.say(chat, "/version")
        messages = await eventually(lambda: notice_of(gateway, chat))
    assert messages == say(language, "version", version=VERSION)


async def notice_of(gateway: Running, chat: str) -> str | None:
    return next((message["text"] for message in await gateway.messages(chat) if message["role"] == "notice"), None)
