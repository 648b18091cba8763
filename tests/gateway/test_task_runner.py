"""One run of a task: what is said, where, once, and what is known of it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.errors import ModelBusy, ModelMisconfigured
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply, ScriptedModel
from gateway.language import LANGUAGES, say
from gateway.talk import history
from gateway.tasks.commands import Caller, overview
from gateway.tasks.jobs import KEPT, sweep
from memory import conversations, coverage, whole_conversations
from memory.database import Database
from memory.schema import conversations as chat_table
from memory.schema import outbox, people
from memory.tasks import Task
from tests.conftest import FakeClock
from tests.gateway.chores import PEOPLE, SPACE, Chores, chores


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Chores]:
    clock.now = datetime(2026, 8, 1, 8, 0, tzinfo=UTC)
    async with chores(sqlite, clock, tmp_path) as made:
        yield made


def asked(house: Chores) -> list[ModelRequest]:
    assert isinstance(house.model, ScriptedModel)
    return house.model.requests


def prompt(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


async def says(house: Chores, answer: Callable[[ModelRequest], Reply] | str) -> None:
    """Another model, as after a start."""
    house.model = ScriptedModel((lambda _request: answer) if isinstance(answer, str) else answer)
    house.open()


async def outcome(house: Chores, task: Task) -> tuple[str, str, str]:
    found = await house.task(task)
    return found.state, found.last_result, found.last_error


# -- what is said ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-138", "CH-84")
@pytest.mark.case("SC-16", "N30")
async def test_what_a_task_says_is_in_the_talk_and_marked(house: Chores) -> None:
    await house.make("Rain until noon, 18 °C.", "2026-08-01 08:30")
    await house.go("2026-08-01T08:30")
    (message,) = await house.log()
    assert (message.text, message.role, message.origin, message.scope) == ("Rain until noon, 18 °C.", "assistant", "scheduled", "")
    assert house.platform.texts("own") == ["Rain until noon, 18 °C."]
    for language in LANGUAGES:
        (said,) = history([message], language=language, in_group=False)
        assert said.by_us
        assert said.text == say(language, "task_mark", text=message.text)
        assert "Rain until noon" in said.text != message.text
    assert await house.rows("outbox", "kind", "state", "message_id") == [("reminder", "sent", message.id)]


@pytest.mark.rule("WD-138")
@pytest.mark.case("SC-18")
@pytest.mark.parametrize("kind", ["say", "ask"])
async def test_what_a_task_says_is_no_input_of_summaries_and_dreams(house: Chores, kind: str) -> None:
    chat = house.chats["own"]
    await house.make("Daily news: …", "2026-08-01 08:30", kind=kind)
    await house.db.write(
        lambda c: conversations.add_message(
            c, now=house.clock(), conversation_id=chat.id, role="user", text="good morning", author_person_id=PEOPLE["own"], turn_id="t", scope="root"
        )
    )
    await house.go("2026-08-01T08:30")
    assert len(await house.log()) == 2
    scopes = ("root", *(f"people/{person}" for person in PEOPLE.values()), f"spaces/{SPACE}")
    found = [talk.text for scope in scopes for talk in await house.db.read(lambda c, scope=scope: coverage.uncovered(c, scope))]
    assert found == ["good morning"]


@pytest.mark.rule("CH-84")
@pytest.mark.case("SC-13")
async def test_after_a_restart_tasks_reach_every_kind_of_chat_though_nobody_writes(house: Chores) -> None:
    made = [await house.make(f"to {chat}", "2026-08-01 09:00", by=by, at=chat) for chat, by in (("ann", "ann"), ("topic", "bob"), ("web", "own"))]
    house.outbox.close()
    house.open()
    await house.go("2026-08-01T09:00")
    assert sorted((str(shown.address), shown.text) for shown in house.platform.shown) == [
        ("loopback:main:ann", "to ann"), ("loopback:main:g1:42", "to topic"),
    ]  # fmt: skip
    assert [message.text for message in await house.log("web")] == ["to web"]
    for task in made:
        assert await outcome(house, task) == ("done", "sent", "")  # kept, and shown as done


@pytest.mark.rule("WD-138")
async def test_a_long_text_is_done_when_its_last_part_is_sent(house: Chores) -> None:
    await says(house, " ".join(["A sentence that is said."] * 400))
    task = await house.make("tell me everything", "2026-08-01 09:00", kind="ask")
    house.platform.fail_next({}, {}, {"later": 30})
    await house.go("2026-08-01T09:00")
    assert len(house.platform.texts()) == 2
    assert (await house.task(task)).state == "active"
    assert (await house.task(task)).running
    house.outbox.wake(house.chats["own"].key)
    await house.go(seconds=60)
    assert len(house.platform.texts()) == 3
    assert await outcome(house, task) == ("done", "sent", "")


@pytest.mark.rule("WD-135")
@pytest.mark.parametrize(("language", "note"), [("en", "(Late: this was due on"), ("ja", "（遅れました。予定は"), ("zh", "（迟到了：原定时间是")])
async def test_a_late_reminder_says_so_in_the_language_of_its_chat(house: Chores, language: str, note: str) -> None:
    await house.make("水を飲む", "2026-08-01 09:00", language=language)
    await house.go("2026-08-01T09:16")
    (text,) = house.platform.texts()
    assert text.startswith(f"水を飲む\n\n{note}")


@pytest.mark.rule("WD-135")
async def test_a_reminder_that_waited_for_its_platform_is_followed_by_the_note(house: Chores) -> None:
    task = await house.make("drink", "2026-08-01 09:00")
    house.platform.down = True
    for _ in range(3):
        await house.go(minutes=0, until="2026-08-01T09:00")
    await house.go(minutes=16)
    await house.go(minutes=1)
    house.platform.down = False
    house.clock.advance(minutes=2)
    house.outbox.wake(house.chats["own"].key)
    await house.go()
    assert house.platform.texts() == ["drink", "(Late: this was due on 2026-08-01 09:00 (Saturday).)"]
    assert await outcome(house, task) == ("done", "sent", "")


@pytest.mark.rule("WD-135", "CH-82")
async def test_a_reminder_that_cannot_be_sent_for_a_day_expires_and_is_shown_as_failed(house: Chores) -> None:
    task = await house.make("drink", "2026-08-01 09:00")
    house.platform.down = True
    await house.go("2026-08-01T09:00")
    assert await house.rows("outbox", "expires_at") == [datetime(2026, 8, 2, 9, 0, tzinfo=UTC)]
    house.platform.down = False
    house.clock.now = datetime(2026, 8, 2, 9, 1, tzinfo=UTC)
    house.outbox.wake(house.chats["own"].key)
    await house.work()
    await house.claim()
    assert house.platform.texts() == []
    assert await outcome(house, task) == ("failed", "failed", "expired")


@pytest.mark.rule("CH-82", "RL-3")
@pytest.mark.parametrize(("began", "expires"), [("09:00", "10:00"), ("09:50", "10:05"), ("14:00", "14:15")])
async def test_how_long_a_reminder_waits_is_counted_from_its_time_and_one_that_comes_late_still_gets_the_grace(
    house: Chores, began: str, expires: str
) -> None:
    house.settings = {"delivery": {"reminder_expires_s": 3600.0}}
    await house.make("drink", "2026-08-01 09:00")
    house.platform.down = True
    await house.go(f"2026-08-01T{began}")
    assert await house.rows("outbox", "expires_at") == [datetime.fromisoformat(f"2026-08-01T{expires}+00:00")]


@pytest.mark.rule("WD-135")
async def test_a_run_whose_job_comes_too_late_is_missed(house: Chores) -> None:
    task = await house.make("drink", "2026-08-01 09:00")
    house.clock.now = datetime(2026, 8, 1, 9, 0, tzinfo=UTC)
    await house.claim()
    house.clock.advance(hours=25)
    await house.work()
    assert house.platform.texts() == []
    assert await outcome(house, task) == ("failed", "missed", "")
    assert (await house.task(task)).missed == 1


# -- whether it arrived ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-84", "WD-138")
@pytest.mark.case("SC-11", "N30")
async def test_a_reminder_whose_send_raises_is_not_done_until_the_platform_has_it(house: Chores) -> None:
    task = await house.make("drink", "2026-08-01 09:00")
    house.platform.fail_next({"raise": RuntimeError("a faulty adapter")})
    await house.go("2026-08-01T09:00")
    assert await outcome(house, task) == ("active", "", "")
    assert (await house.task(task)).running
    house.clock.advance(seconds=60)
    house.outbox.wake(house.chats["own"].key)
    await house.go()
    assert house.platform.texts() == ["drink"]
    assert await outcome(house, task) == ("done", "sent", "")


@pytest.mark.rule("CH-84")
@pytest.mark.case("SC-11")
async def test_a_reminder_that_is_refused_is_shown_as_failed_to_its_owner(house: Chores) -> None:
    once, daily = await house.make("once", "2026-08-01 09:00"), await house.make("daily", "0 9 * * *", by="ann")
    house.platform.fail_next({"refuse": "chat not found"}, {"refuse": "chat not found"})
    await house.go("2026-08-01T09:00")
    assert await outcome(house, once) == ("failed", "failed", "undelivered")
    assert await outcome(house, daily) == ("active", "failed", "undelivered")
    me = Caller(chat=house.chats["own"], person_id=PEOPLE["own"], role="owner", language="en", manages=nobody)
    assert "not delivered · last: failed (the chat app did not take the message)" in await overview(house.tasks, me)


async def nobody() -> bool:
    return False


@pytest.mark.rule("CH-84")
@pytest.mark.case("SC-11")
async def test_a_part_that_was_taken_without_an_id_has_not_arrived(house: Chores) -> None:
    task = await house.make("drink", "2026-08-01 09:00")
    await house.go("2026-08-01T09:00")
    await house.set(task, run_turn="t-again", state="active", ended_at=None)

    def nameless(connection: sa.Connection) -> None:
        connection.execute(sa.update(outbox).values(turn_id="t-again", platform_ids=None))

    await house.db.write(nameless)
    await house.claim()
    assert await outcome(house, task) == ("failed", "failed", "undelivered")


@pytest.mark.case("SC-12")
@pytest.mark.rule("WD-138")
async def test_a_task_whose_topic_is_gone_speaks_in_the_group_from_then_on(house: Chores) -> None:
    task = await house.make("stand-up", "0 9 * * *", by="ann", at="topic")
    general = house.chats["group"]
    await house.db.write(lambda c: whole_conversations.delete(c, general.id))
    house.clock.now = datetime(2026, 8, 1, 9, 0, tzinfo=UTC)
    await house.claim()
    house.platform.fail_next({"thread_gone": True})
    await house.work()
    await house.claim()
    assert (await house.task(task)).address == general.key
    await house.go("2026-08-02T09:00")
    assert [str(shown.address) for shown in house.platform.shown] == ["loopback:main:g1", "loopback:main:g1"]
    (message,) = await house.log("group")
    assert message.text == "stand-up"
    assert await outcome(house, task) == ("active", "sent", "")


@pytest.mark.case("SC-12")
@pytest.mark.rule("WD-138")
async def test_every_task_of_a_topic_that_is_gone_follows_and_nothing_is_sent_to_the_topic_any_more(house: Chores) -> None:
    first, second = await house.make("one", "2026-08-01 09:00", at="topic"), await house.make("two", "2026-08-01 10:00", at="topic")
    house.platform.fail_next({"thread_gone": True})
    await house.go("2026-08-01T09:00")
    assert (await house.task(second)).address == house.chats["group"].key
    tried = len(house.platform.calls)
    await house.go("2026-08-01T10:00")
    assert [str(shown.address) for shown in house.platform.shown] == ["loopback:main:g1"] * 2
    assert len(house.platform.calls) == tried + 1
    for task in (first, second):
        assert await outcome(house, task) == ("done", "sent", "")


# -- asking the model --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-138")
async def test_a_request_is_answered_with_the_talk_and_the_files_of_its_chat(house: Chores, tmp_path: Path) -> None:
    await says(house, "Nine degrees.")
    (tmp_path / "workspace" / "MEMORY.md").write_text("- 她喜欢大提琴。\n", encoding="utf-8")
    chat = house.chats["own"]
    await house.db.write(
        lambda c: conversations.add_message(
            c, now=house.clock(), conversation_id=chat.id, role="user", text="I live in Kyōto", author_person_id=PEOPLE["own"], turn_id="t"
        )
    )
    task = await house.make("How is the weather?", "2026-08-01 09:00", kind="ask")
    await house.go("2026-08-01T09:00")
    (request,) = asked(house)
    assert request.purpose == "task"
    assert not request.tools
    assert "大提琴" in request.messages[0].text
    assert "I live in Kyōto" in prompt(request)
    assert "How is the weather?" in request.messages[-1].text
    assert "[silent]" not in prompt(request)
    assert house.platform.texts() == ["Nine degrees."]
    assert await house.rows("model_calls", "purpose", "person_id", "conversation_id", "outcome") == [("task", PEOPLE["own"], chat.id, "ok")]
    assert await outcome(house, task) == ("done", "sent", "")


@pytest.mark.rule("WD-138")
@pytest.mark.case("SC-14", "N30")
async def test_a_silent_task_that_has_nothing_to_say_sends_nothing_and_its_run_is_known(house: Chores) -> None:
    await says(house, " [silent]\n")
    task = await house.make("tell me only if the price is under 10", "0 * * * *", kind="ask", silent=True)
    await house.go("2026-08-01T09:00")
    assert "[silent]" in asked(house)[0].messages[-1].text
    assert house.platform.texts() == []
    assert await house.log() == []
    assert await outcome(house, task) == ("active", "silent", "")
    assert await house.rows("jobs", "state", "result") == [("done", {"result": "silent", "error": ""})]


@pytest.mark.rule("WD-9", "WD-10")
async def test_a_run_reads_the_scope_of_its_chat_only_while_its_maker_may(house: Chores, tmp_path: Path) -> None:
    for folder, words in ((".", "root secret"), (f"people/{PEOPLE['ann']}", "ann's secret"), (f"spaces/{SPACE}", "our own notes")):
        (tmp_path / "workspace" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "workspace" / folder / "MEMORY.md").write_text(f"- {words}\n", encoding="utf-8")
    secrets = ("root secret", "ann's secret", "our own notes")

    async def read_by(task: Task) -> list[str]:
        before = len(asked(house))
        await house.tasks.run_now(await house.task(task))
        await house.go(seconds=1)
        return [secret for secret in secrets if secret in prompt(asked(house)[before])]

    ann, group = await house.make(kind="ask", by="ann"), await house.make(kind="ask", by="own", at="group")
    assert await read_by(ann) == ["ann's secret"]
    assert await read_by(group) == ["our own notes"]  # made by the owner, and still nobody's private words
    await house.db.write(lambda c: c.execute(sa.update(chat_table).where(chat_table.c.kind == "dm").values(memory_on=False)).close())
    assert await read_by(ann) == []
    await house.set(group, scope="root")
    assert await read_by(group) == []


@pytest.mark.rule("CH-83", "WD-9")
@pytest.mark.parametrize("kind", ["say", "ask"])
async def test_a_blocked_maker_is_heard_no_more(house: Chores, kind: str) -> None:
    task = await house.make(by="ann", at="group", kind=kind)
    await house.db.write(lambda c: c.execute(sa.update(people).where(people.c.id == PEOPLE["ann"]).values(blocked=True)).close())
    await house.go("2026-08-01T09:00")
    assert asked(house) == []
    assert house.platform.texts() == []
    assert await outcome(house, task) == ("active", "revoked", "")


async def test_a_used_up_budget_ends_the_run_without_a_request_and_runs_count_for_it(house: Chores) -> None:
    house.settings["budgets"] = {"person_day_tokens": 10}
    task = await house.make(kind="ask")
    await house.go("2026-08-01T09:00")
    assert len(asked(house)) == 1
    await house.go("2026-08-01T23:00")
    await house.tasks.run_now(await house.task(task))
    await house.go(seconds=1)
    assert len(asked(house)) == 1
    assert await outcome(house, task) == ("active", "failed", "BudgetUsed")
    again = house.budgets
    await again.load()
    assert again.used_up_for(PEOPLE["own"]) == "person"


async def test_a_busy_model_is_asked_again_and_one_that_is_set_up_wrongly_fails_the_run(house: Chores) -> None:
    busy = [Fail(ModelBusy("busy", retry_after_s=120)), "here it is"]
    await says(house, lambda _request: busy.pop(0))
    task = await house.make(kind="ask", when="2026-08-01 09:00")
    await house.go("2026-08-01T09:00")
    assert (await house.task(task)).running
    await house.go(minutes=3)
    assert house.platform.texts() == ["here it is"]
    await says(house, lambda _request: Fail(ModelMisconfigured("wrong key")))
    broken = await house.make(kind="ask", when="2026-08-01 10:00")
    await house.go("2026-08-01T10:00")
    assert await outcome(house, broken) == ("failed", "failed", "ModelMisconfigured")
    await house.go("2026-08-03T10:00")
    assert house.platform.texts() == ["here it is"]  # nothing comes back a day later


# -- once --------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-138", "WD-136")
@pytest.mark.case("N30")
async def test_a_kill_after_the_message_was_stored_sends_it_once(house: Chores) -> None:
    await says(house, "paid once")
    task = await house.make(kind="ask", when="2026-08-01 09:00")
    house.killed = True
    await house.go("2026-08-01T09:00")
    assert house.platform.texts() == []
    house.killed = False
    await house.go(minutes=2)
    assert house.platform.texts() == ["paid once"]
    assert len(await house.log()) == 1
    assert len(asked(house)) == 1
    assert await outcome(house, task) == ("done", "sent", "")


async def test_what_was_deleted_or_paused_before_its_run_says_nothing(house: Chores) -> None:
    deleted, paused = await house.make("deleted"), await house.make("paused")
    house.clock.now = datetime(2026, 8, 1, 9, 0, tzinfo=UTC)
    await house.claim()
    await house.tasks.delete(deleted)
    await house.tasks.pause(await house.task(paused))
    await house.work()
    await house.claim()
    assert house.platform.texts() == []
    assert await outcome(house, paused) == ("paused", "stopped", "")


async def test_a_run_by_hand_leaves_the_plan_as_it_is_also_of_a_paused_task(house: Chores) -> None:
    task = await house.make("drink")
    await house.tasks.pause(task)
    await house.tasks.run_now(await house.task(task))
    await house.go(seconds=1)
    assert house.platform.texts() == ["drink"]
    found = await house.task(task)
    assert (found.state, found.last_result, found.next_run) == ("paused", "sent", datetime(2026, 8, 1, 9, 0, tzinfo=UTC))


@pytest.mark.parametrize("when", ["2026-08-01 09:00", "0 9 * * *"])
async def test_a_task_ends_with_its_chat(house: Chores, when: str) -> None:
    task = await house.make("drink", when, at="web")
    await house.db.write(lambda c: whole_conversations.delete(c, house.chats["web"].id))
    await house.go("2026-08-01T09:00")
    assert await outcome(house, task) == ("failed", "failed", "chat_gone")
    await house.go("2026-08-05T09:00")
    assert (await house.task(task)).runs == 1
    await house.db.write(lambda c: sweep(c, house.clock() + KEPT))
    assert await house.rows("tasks", "id") == []
