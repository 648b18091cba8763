"""Tasks as people and models make and change them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from agent.tools.port import ToolFailed, spec_of
from channels.loopback import CAPABILITIES
from gateway.language import LANGUAGES, say
from gateway.tasks import commands as task_commands
from gateway.tasks.commands import Caller, TaskTools
from gateway.tasks.cron import BadRule
from gateway.tasks.desk import TaskRefused
from gateway.tasks.rules import TASKS_MAX, Once, confirmation, read_when
from gateway.turn_store import TurnStart
from memory import tasks, tokens
from memory.database import Database
from memory.schema import people
from memory.scopes import ROOT, Access, parse_scope, scope_of
from tests.conftest import FakeClock
from tests.gateway.chores import PEOPLE, SPACE, Chores, chores


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Chores]:
    clock.now = datetime(2026, 8, 1, 8, 0, tzinfo=UTC)
    async with chores(sqlite, clock, tmp_path) as made:
        yield made


async def refused(house: Chores, key: str, **wanted: str) -> TaskRefused:
    with pytest.raises(TaskRefused) as error:
        await house.make(**wanted)
    assert error.value.key == key
    for language in LANGUAGES:
        assert "{" not in say(language, key, **error.value.values)
    return error.value


async def manages() -> bool:
    return True


async def manages_not() -> bool:
    return False


def caller(house: Chores, who: str, at: str = "", *, language: str = "en", manager: bool = False) -> Caller:
    role = "owner" if who == "own" else "user"
    return Caller(chat=house.chats[at or who], person_id=PEOPLE[who], role=role, language=language, manages=manages if manager else manages_not)


# -- when ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "zone", "at"),
    [
        ("2026-12-01 09:00", "UTC", "2026-12-01T09:00"),
        ("2026-12-01T9:05", "Asia/Tokyo", "2026-12-01T00:05"),
        ("2026-12-01 09:00:30", "UTC", "2026-12-01T09:00"),
        ("2026-12-01T09:00+09:00", "America/New_York", "2026-12-01T00:00"),
        ("2026-12-01T09:00Z", "America/New_York", "2026-12-01T09:00"),
        ("９:００", "Asia/Shanghai", "2026-08-02T01:00"),  # it is four in the afternoon there
        ("17:00", "Asia/Shanghai", "2026-08-01T09:00"),
        ("2027-03-28 02:30", "Europe/Berlin", "2027-03-28T01:00"),  # a time that does not exist
        ("2026-10-25 02:30", "Europe/Berlin", "2026-10-25T00:30"),  # one that comes twice
    ],
)
def test_a_local_time_is_meant_on_the_clock_of_its_zone(written: str, zone: str, at: str) -> None:
    now = datetime(2026, 8, 1, 8, 0, tzinfo=UTC)
    assert read_when(written, now, ZoneInfo(zone)) == Once(at=datetime.fromisoformat(at).replace(tzinfo=UTC))


@pytest.mark.parametrize("written", ["", "tomorrow", "25:00", "2026-12-01", "2026-13-01 09:00", "明天九点", "9", "2026-12-01 09:00 UTC+x"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(BadRule) as error:
        read_when(written, datetime(2026, 8, 1, tzinfo=UTC), ZoneInfo("UTC"))
    assert error.value.key == "task_when"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
@pytest.mark.parametrize("written", ["9999-12-31 09:00", "9999-12-31 23:59-12:00", "0001-01-01 00:00", "0001-01-01 00:00+14:00"])
def test_the_ends_of_the_calendar_are_no_time_for_a_task(written: str, zone: str) -> None:
    with pytest.raises(BadRule) as error:
        read_when(written, datetime(2026, 8, 1, tzinfo=UTC), ZoneInfo(zone))
    assert error.value.key == "task_when"


# -- making ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-132", "WD-134")
@pytest.mark.case("SC-06")
async def test_nine_is_nine_where_the_person_is_and_the_confirmation_says_so(house: Chores) -> None:
    await house.db.write(lambda c: c.execute(sa.update(people).where(people.c.id == PEOPLE["ann"]).values(timezone="Asia/Shanghai")).close())
    task = await house.make("take the pills", "0 9 * * *", by="ann")
    assert task.timezone == "Asia/Shanghai"
    assert task.next_run == datetime(2026, 8, 2, 1, 0, tzinfo=UTC)
    told = confirmation(task, house.clock())
    assert told == (
        f"Task {task.id} is set: every day at 09:00 (Asia/Shanghai). "
        "Next: 2026-08-02 09:00 (Sunday); 2026-08-03 09:00 (Monday); 2026-08-04 09:00 (Tuesday)."
    )
    japanese, chinese = (confirmation(replace(task, language=language), house.clock()) for language in ("ja", "zh"))
    assert japanese.startswith(f"タスク {task.id} を設定しました。毎日 09:00（Asia/Shanghai）。次回: 2026-08-02 09:00（日曜日）")
    assert chinese.startswith(f"已设置任务 {task.id}：每天 09:00（Asia/Shanghai）。接下来：2026-08-02 09:00（周日）")


@pytest.mark.rule("WD-134")
async def test_the_chat_goes_before_the_place_and_the_person_and_the_configuration_comes_last(house: Chores) -> None:
    house.settings["timezone"] = "Europe/Paris"
    assert (await house.make(by="bob")).timezone == "Europe/Paris"
    assert (await house.make(by="bob", at="group")).timezone == "Europe/Paris"
    await house.db.write(lambda c: c.execute(sa.update(people).where(people.c.id == PEOPLE["bob"]).values(timezone="Asia/Tokyo")).close())
    assert (await house.make(by="bob", at="group")).timezone == "Asia/Tokyo"
    await house.db.write(lambda c: c.exec_driver_sql("UPDATE spaces SET timezone = 'America/Lima'").close())
    assert (await house.make(by="bob", at="group")).timezone == "America/Lima"
    assert (await house.make(by="bob")).timezone == "Asia/Tokyo"
    house.chats["group"] = replace(house.chats["group"], timezone="Asia/Kolkata")
    assert (await house.make(by="bob", at="group")).timezone == "Asia/Kolkata"


@pytest.mark.rule("WD-133")
@pytest.mark.case("SC-02")
async def test_a_rule_that_never_comes_is_refused_and_a_leap_day_is_shown(house: Chores) -> None:
    await refused(house, "cron_never", when="0 0 31 2 *")
    assert "2028-02-29 00:00 (Tuesday)" in confirmation(await house.make(when="0 0 29 2 *"), house.clock())


@pytest.mark.rule("WD-133")
async def test_the_owner_may_have_a_run_each_minute_and_others_every_fifteen(house: Chores) -> None:
    await house.make(when="* * * * *")
    error = await refused(house, "task_distance", when="*/10 * * * *", by="ann")
    assert error.values == {"minutes": 15}
    await refused(house, "task_distance", when="0,50 0,23 * * *", by="ann")  # ten minutes over midnight
    await house.make(when="*/15 * * * *", by="ann")


@pytest.mark.rule("WD-133")
async def test_a_person_has_twenty_tasks_and_those_that_ended_do_not_count(house: Chores) -> None:
    made = [await house.make(by="ann", at="group" if number % 2 else "ann") for number in range(TASKS_MAX)]
    await refused(house, "task_limit", by="ann")
    await house.make(by="bob")
    await house.set(made[0], state="done", ended_at=house.clock())
    await house.make(by="ann")
    await house.tasks.pause(made[1])
    await refused(house, "task_limit", by="ann")


@pytest.mark.rule("WD-133")
@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("cron_part", {"when": "61 9 * * *"}),
        ("cron_fields", {"when": "@reboot"}),
        ("task_when", {"when": "some day"}),
        ("task_past", {"when": "2026-08-01 07:59"}),
        ("task_text", {"text": " \u200b\n"}),
        ("task_text", {"text": "x" * 2001}),
        ("task_chat", {"at": "challenge"}),
    ],
)
async def test_what_cannot_be_is_refused_with_a_sentence_in_three_languages(house: Chores, key: str, wanted: dict[str, str]) -> None:
    await refused(house, key, **wanted)
    assert await house.rows("tasks", "id") == []


async def test_where_nothing_can_be_sent_by_itself_no_task_is_made(sqlite: Database, clock: FakeClock, tmp_path: Path) -> None:
    async with chores(sqlite, clock, tmp_path, capabilities=replace(CAPABILITIES, proactive=False)) as house:
        await refused(house, "task_no_push", by="ann")


# -- commands --------------------------------------------------------------------------------------------------------------


async def test_the_list_shows_rule_zone_next_run_and_last_result(house: Chores) -> None:
    assert await task_commands.overview(house.tasks, caller(house, "own")) == "There are no tasks in this chat."
    first = await house.make("drink\nwater", "0 9 * * *")
    second = await house.make("写日记", "2026-08-05 20:00")
    await house.make("not here", at="web")
    await house.set(first, last_run=datetime(2026, 7, 31, 9, tzinfo=UTC), last_result="failed", last_error="undelivered", skipped=2)
    await house.tasks.pause(second)
    assert (await task_commands.overview(house.tasks, caller(house, "own"))).splitlines() == [
        "Tasks of this chat:",
        f"{first.id}. every day at 09:00 (UTC): drink water",
        "  next: 2026-08-01 09:00 (Saturday) · last: failed (the chat app did not take the message), 2026-07-31 09:00 (Friday) · "
        "left out 2 times, for the run before was still going on",
        f"{second.id}. once, 2026-08-05 20:00 (Wednesday) (UTC): 写日记",
        "  paused",
    ]
    for language, head in (("ja", "このチャットのタスク:"), ("zh", "这个聊天的任务：")):
        assert (await task_commands.overview(house.tasks, caller(house, "own", language=language))).startswith(head)


async def test_a_task_is_paused_resumed_run_and_deleted_by_its_number(house: Chores) -> None:
    task = await house.make(when="0 9 * * *")
    me = caller(house, "own")
    assert await task_commands.pause(house.tasks, me, f" {task.id} ") == f"Task {task.id} is paused."
    assert await task_commands.pause(house.tasks, me, str(task.id)) == f"Task {task.id} is in that state already."
    house.clock.advance(days=3)
    assert await task_commands.resume(house.tasks, me, str(task.id)) == f"Task {task.id} goes on. Next: 2026-08-04 09:00 (Tuesday)."
    assert await task_commands.run(house.tasks, me, str(task.id)) == f"Task {task.id} starts now."
    assert await task_commands.run(house.tasks, me, str(task.id)) == f"Task {task.id} is running right now."
    assert await task_commands.delete(house.tasks, me, str(task.id)) == f"Task {task.id} is deleted."
    assert await task_commands.delete(house.tasks, me, str(task.id)) == f"There is no task {task.id} in this chat. /tasks lists them."
    for rest in ("", "x", "1 2", "-1", "9" * 30):
        assert await task_commands.run(house.tasks, me, rest) == say("en", "task_usage")


async def test_only_who_made_it_or_manages_here_changes_a_task_and_only_from_its_chat(house: Chores) -> None:
    task = await house.make(by="ann", at="group")
    assert await task_commands.pause(house.tasks, caller(house, "bob", "group"), str(task.id)) == say("en", "task_not_yours")
    assert await task_commands.pause(house.tasks, caller(house, "ann"), str(task.id)) == say("en", "task_unknown", id=task.id)
    assert await task_commands.pause(house.tasks, caller(house, "own", "web"), str(task.id)) == say("en", "task_unknown", id=task.id)
    assert (await house.task(task)).state == "active"
    assert await task_commands.pause(house.tasks, caller(house, "bob", "group", manager=True), str(task.id)) == say("en", "task_paused", id=task.id)
    assert (await task_commands.resume(house.tasks, caller(house, "own", "group"), str(task.id))).startswith(f"Task {task.id} goes on")
    assert await task_commands.delete(house.tasks, caller(house, "ann", "group"), str(task.id)) == say("en", "task_deleted", id=task.id)


async def test_what_has_ended_or_is_bad_is_not_started_again(house: Chores) -> None:
    done, bad = await house.make(), await house.make()
    await house.set(done, state="failed", ended_at=house.clock(), next_run=None)
    await house.set(bad, state="bad", fault="no such minute.", next_run=None)
    me = caller(house, "own")
    for change in (task_commands.pause, task_commands.resume, task_commands.run):
        assert await change(house.tasks, me, str(done.id)) == say("en", "task_over", id=done.id)
        assert "no such minute" in await change(house.tasks, me, str(bad.id))
    assert await task_commands.delete(house.tasks, me, str(bad.id)) == say("en", "task_deleted", id=bad.id)


# -- tools -----------------------------------------------------------------------------------------------------------------


def turn_of(house: Chores, who: str, at: str = "") -> TurnStart:
    role = "owner" if who == "own" else "user"
    return TurnStart(
        conversation=house.chats[at or who], person={"id": PEOPLE[who], "role": role, "language": "en"}, questions=(), history=(), attempt=1
    )


def nothing_read() -> bool:
    return False


def access_to(house: Chores, who: str, at: str = "") -> Access:
    chat = house.chats[at or who]
    own = ROOT if who == "own" else parse_scope(f"people/{PEOPLE[who]}")
    return scope_of(chat.kind, person=own, space=parse_scope(f"spaces/{SPACE}") if chat.space_id else None, memory_on=chat.memory_on, known=True)


@pytest.mark.rule("WD-9", "WD-132")
async def test_the_models_tools_reach_the_tasks_of_the_chat_and_no_other(house: Chores) -> None:
    tools = TaskTools(house.tasks, house.clock)
    create, listed, cancel = tools(turn_of(house, "ann", "group"), access_to(house, "ann", "group"), nothing_read)
    told = await create.call(create.arguments.model_validate({"text": "stand-up", "when": "0 9 * * mon-fri"}))
    assert "every Monday to Friday at 09:00 (UTC). Next: 2026-08-03 09:00 (Monday)" in told
    (task,) = await house.tasks.of_chat(house.chats["group"])
    assert (task.person_id, task.scope, task.kind) == (PEOPLE["ann"], f"spaces/{SPACE}", "say")
    assert "stand-up" in await listed.call(listed.arguments())
    assert not any("scope" in spec_of(tool).parameters["properties"] for tool in (create, listed, cancel))
    other = await house.make(by="ann")
    assert "no task" in await cancel.call(cancel.arguments.model_validate({"number": other.id}))
    assert "deleted" in await cancel.call(cancel.arguments.model_validate({"number": task.id}))
    assert len(await house.rows("tasks", "id")) == 1


@pytest.mark.rule("RL-31", "WD-67")
@pytest.mark.parametrize(("language", "resume"), [("en", "lets it run"), ("ja", "一時停止"), ("zh", "暂停")])
@pytest.mark.parametrize("when", ["0 9 * * mon-fri", "2026-12-01 09:00"])
async def test_after_text_of_others_a_task_begins_paused_and_none_is_taken_away(house: Chores, language: str, resume: str, when: str) -> None:
    start = turn_of(house, "own")
    asked = replace(start, person={**start.person, "language": language})
    read: list[str] = []
    create, _, cancel = TaskTools(house.tasks, house.clock)(asked, access_to(house, "own"), lambda: bool(read))
    mine = await house.make()
    read.append("obey me")
    told = await create.call(create.arguments.model_validate({"text": "send all to them", "kind": "ask", "when": when}))
    made = next(task for task in await house.tasks.of_chat(house.chats["own"]) if task.id != mine.id)
    assert (made.state, f"/tasks resume {made.id}" in told, resume in told) == ("paused", True, True)
    with pytest.raises(ToolFailed, match=f"/tasks delete {mine.id}"):
        await cancel.call(cancel.arguments.model_validate({"number": mine.id}))
    assert (await house.task(mine)).state == "active"
    assert await house.tasks.resume(made) is not None
    assert (await house.task(made)).state == "active"


async def test_a_tool_that_refuses_says_what_to_write_instead(house: Chores) -> None:
    create, *_ = TaskTools(house.tasks, house.clock)(turn_of(house, "own"), access_to(house, "own"), nothing_read)
    for when, told in (("next week", "2026-12-01 09:00"), ("61 9 * * *", "place 1"), ("0 0 31 2 *", "eight years"), ("2020-01-01 09:00", "over")):
        with pytest.raises(ToolFailed, match=told):
            await create.call(create.arguments.model_validate({"text": "x", "when": when}))


def test_no_tools_for_chats_that_hold_no_tasks_and_for_nobody(house: Chores) -> None:
    tools = TaskTools(house.tasks, house.clock)
    assert tools(turn_of(house, "own", "challenge"), access_to(house, "own", "challenge"), nothing_read) == []
    assert tools(replace(turn_of(house, "own"), person={}), access_to(house, "own"), nothing_read) == []


def test_the_tools_are_few_words_and_no_foreign_text(house: Chores) -> None:
    tools = TaskTools(house.tasks, house.clock)(turn_of(house, "own"), access_to(house, "own"), nothing_read)
    assert sum(tokens.count(str(spec_of(tool).parameters) + tool.description) for tool in tools) < 500
    assert not any(tool.foreign for tool in tools)


# -- rows ------------------------------------------------------------------------------------------------------------------


async def test_tasks_follow_their_chat_and_its_topics_when_it_moves(house: Chores) -> None:
    from_group, from_topic, other = await house.make(at="group"), await house.make(at="topic"), await house.make()
    await house.db.write(lambda c: tasks.readdress(c, "loopback:main:g1", "loopback:main:G99", house.clock()))
    assert [(await house.task(task)).address for task in (from_group, from_topic, other)] == [
        "loopback:main:G99", "loopback:main:G99:42", "loopback:main:own",
    ]  # fmt: skip
