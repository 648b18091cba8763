"""While a turn runs (CH-70 to CH-73): what comes meanwhile is taken in or waits, its sender sees which, and commands never wait."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply, Say, Until, Wait
from channels.loopback import CAPABILITIES
from gateway.access import Rules
from gateway.language import say
from tests.patience import patience
from tests.talks import Talk, asked, model, talk

PLAIN = replace(CAPABILITIES, reactions=False)
BUDGETED = replace(PLAIN, send_budget=8)
ALL = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))


class Question(BaseModel):
    q: str = ""


@dataclass
class SlowTool:
    """Looks something up until it is let go; says what became of it."""

    name: str = "look"
    description: str = "Looks something up."
    arguments: type[BaseModel] = Question
    foreign = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[str] = field(default_factory=list[str])

    async def call(self, arguments: BaseModel) -> str:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return "found it"


def looks_first(request: ModelRequest) -> Reply:
    """Calls the tool twice in its first step, and answers in the second."""
    if request.messages[-1].role is Role.USER and not any(message.role is Role.TOOL for message in request.messages):
        return [Say("Let me see. "), Call("look", {"q": "a"}, id="1"), Call("look", {"q": "b"}, id="2")]
    return f"Answer to {asked(request)!r}."


@pytest.mark.rule("CH-70", "CH-73")
@pytest.mark.case("DL-06", "DL-07")
async def test_new_words_enter_at_the_next_tool_boundary_and_the_running_tool_is_not_lost(tmp_path: Path) -> None:
    tool = SlowTool()
    async with talk(tmp_path, model(looks_first), tools=[tool]) as chat:
        chat.says("find a hotel")
        await asyncio.wait_for(tool.begun.wait(), 10)
        second = chat.says("in Kyoto")
        await chat.until(lambda: chat.platform.reactions)
        assert chat.platform.reactions == [(second, "👀")]
        tool.go.set()
        await chat.until(lambda: "Answer" in "".join(chat.texts()))
        assert tool.ended == ["done"], "the call that ran was finished, the other one was skipped"
        results = [message.text for message in chat.requests[1].messages if message.role is Role.TOOL]
        assert [text.split(":")[0] for text in results] == ["found it", "skipped"]
        assert asked(chat.requests[1]) == "in Kyoto"
        await chat.shows(["Let me see.\n\nAnswer to 'in Kyoto'."])
        assert len(chat.requests) == 2


@pytest.mark.rule("CH-70")
async def test_words_for_a_turn_that_ends_first_are_the_next_turn(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with talk(tmp_path, model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])) as chat:
        chat.says("first")
        await chat.thinking()
        second = chat.says("second")
        await chat.until(lambda: chat.platform.reactions)
        go.set()
        await chat.shows(["Re: first", "Re: second"])
        assert [message.reply_to for message in chat.messages()][1] == second
        history = [message.text for message in chat.requests[1].messages if message.role is not Role.SYSTEM]
        assert history[:2] == ["first", "Re: first"], "the second turn knows the answer that came after its question"


@pytest.mark.rule("CH-71", "CH-73")
@pytest.mark.case("DL-06")
async def test_in_queue_mode_everything_waits_its_turn(tmp_path: Path) -> None:
    tool = SlowTool()
    async with talk(tmp_path, model(looks_first), tools=[tool]) as chat:
        chat.says("/busy queue")
        await chat.shown()
        chat.says("find a hotel")
        await asyncio.wait_for(tool.begun.wait(), 10)
        later = chat.says("and a train")
        await chat.until(lambda: chat.platform.reactions)
        assert chat.platform.reactions == [(later, "⏳")]
        tool.go.set()
        await chat.until(lambda: len(chat.texts()) == 3)
        assert tool.ended[:2] == ["done", "done"]
        assert asked(chat.requests[1]) == "find a hotel"


@pytest.mark.rule("CH-73")
@pytest.mark.case("DL-06")
@pytest.mark.parametrize(
    ("mode", "line"), [("steer", say("en", "busy_steered")), ("queue", "Queued, 1 ahead.")]
)
async def test_without_reactions_one_line_for_a_whole_burst_says_what_became_of_it(tmp_path: Path, mode: str, line: str) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with talk(tmp_path, script, can=PLAIN, config={"busy": {"mode": mode}}) as chat:
        chat.says("first question")
        await chat.thinking()
        for text in ("more", "and more", "and still more"):
            chat.says(text)
        await chat.shows([line])
        assert chat.platform.reactions == []
        go.set()
        texts = await chat.shown(3)
        assert texts[0] == line
        assert texts.count(line) == 1


@pytest.mark.rule("CH-73")
async def test_where_sends_are_counted_nothing_is_said_about_waiting(tmp_path: Path) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with talk(tmp_path, script, can=BUDGETED) as chat:
        chat.says("first")
        await chat.thinking()
        chat.says("second")
        await asyncio.sleep(0.3)
        assert chat.texts() == []
        go.set()
        await chat.shows(["Re: first", "Re: second"])


@pytest.mark.case("SC-25")
@pytest.mark.rule("CH-70", "CH-60")
async def test_other_people_in_a_group_wait_their_turn(tmp_path: Path) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with talk(tmp_path, script) as chat:
        chat.says("@yume mine", chat="g1", group=True, sender="ann")
        await chat.thinking()
        other = chat.says("@yume and mine", chat="g1", group=True, sender="bob")
        await chat.until(lambda: chat.platform.reactions)
        assert chat.platform.reactions == [(other, "⏳")]
        go.set()
        await chat.shows(["Re: ann: mine", "Re: bob: and mine"], chat="g1")


# Commands beside the turn

STORY = "Once upon a time there was a fox who lived beside a quiet river. "


def endless(request: ModelRequest) -> Reply:
    """A story without an end; everything else is answered at once."""
    if "story" in asked(request):
        return [Say(STORY), Wait(600), Say("The end.")]
    return f"Re: {asked(request)}"


async def timed(seen: Talk, text: str, said: str, *, chat: str = "c1", **more: object) -> float:
    """Seconds from a command to its answer."""
    began = time.monotonic()
    seen.says(text, chat=chat, **more)
    await seen.until(lambda: any(said in shown for shown in seen.texts(chat)))
    return time.monotonic() - began


@pytest.mark.rule("CH-72")
@pytest.mark.parametrize(("command", "said"), [("/status", "Answering for"), ("/help", "Commands"), ("/why", "running"), ("/whoami", "You are")])
async def test_commands_do_not_wait_for_the_turn(tmp_path: Path, command: str, said: str) -> None:
    async with talk(tmp_path, model(endless)) as chat:
        chat.says("tell me a story")
        await chat.thinking()
        assert await timed(chat, command, said) < patience(1.0)
        assert len(chat.requests) == 1
        chat.says("/stop")
        await chat.shown(3)


@pytest.mark.rule("CH-72")
async def test_a_stop_keeps_what_was_said_and_leaves_the_queue(tmp_path: Path) -> None:
    async with talk(tmp_path, model(endless)) as chat:
        chat.says("/busy queue")
        await chat.shown()
        chat.says("tell me a story")
        await chat.until(lambda: len(chat.texts()) == 2)
        chat.says("what time is it?")
        assert await timed(chat, "/stop", "Stopped.") < patience(1.0)
        await chat.until(lambda: len(chat.texts()) == 4)
        assert chat.texts()[1] == STORY.strip(), "the preview became the answer that was cut short"
        assert set(chat.texts()[2:]) == {"Stopped.", "Re: what time is it?"}


@pytest.mark.rule("CH-72")
async def test_stop_all_also_drops_what_waits(tmp_path: Path) -> None:
    async with talk(tmp_path, model(endless)) as chat:
        chat.says("tell me a story")
        await chat.until(chat.texts)
        chat.says("what time is it?")
        await chat.until(lambda: chat.platform.reactions)
        chat.says("/stop all")
        await chat.until(lambda: len(chat.texts()) == 2)
        await asyncio.sleep(0.3)
        assert chat.texts() == [STORY.strip(), "Stopped. 1 waiting message was dropped."]
        assert len(chat.requests) == 1


@pytest.mark.rule("CH-72")
async def test_a_stop_ends_the_tool_too(tmp_path: Path) -> None:
    tool = SlowTool()
    async with talk(tmp_path, model(looks_first), tools=[tool]) as chat:
        chat.says("find a hotel")
        await asyncio.wait_for(tool.begun.wait(), 10)
        assert await timed(chat, "/stop", "Stopped.") < patience(1.0)
        await chat.until(lambda: tool.ended)
        assert tool.ended == ["cancelled"]
        assert len(chat.requests) == 1


@pytest.mark.rule("CH-72", "CH-118")
async def test_in_a_group_only_the_one_who_asked_stops_the_answer(tmp_path: Path) -> None:
    async with talk(tmp_path, model(endless), rules=Rules(groups=frozenset({"g1"}))) as chat:
        chat.says("@yume tell me a story", chat="g1", group=True, sender="ann")
        await chat.until(lambda: chat.texts("g1"))
        await timed(chat, "@yume /stop", "Only the person", chat="g1", group=True, sender="bob")
        await timed(chat, "@yume /clear", "Only a manager", chat="g1", group=True, sender="bob")
        await timed(chat, "@yume /stop", "Stopped.", chat="g1", group=True, sender="ann")


@pytest.mark.rule("CH-12", "CH-72", "CH-118")
async def test_a_manager_of_the_group_stops_the_answer_too(tmp_path: Path) -> None:
    async with talk(tmp_path, model(endless), rules=Rules(groups=frozenset({"g1"}))) as chat:
        chat.says("@yume tell me a story", chat="g1", group=True, sender="ann")
        await chat.until(lambda: chat.texts("g1"))
        await timed(chat, "@yume /stop", "Stopped.", chat="g1", group=True, sender="admin-bob")


@pytest.mark.rule("CH-70", "CH-73")
async def test_steering_by_command_is_confirmed_once_and_works_in_queue_mode_too(tmp_path: Path) -> None:
    tool = SlowTool()
    async with talk(tmp_path, model(looks_first), can=PLAIN, tools=[tool], config={"busy": {"mode": "queue"}}) as chat:
        chat.says("find a hotel")
        await asyncio.wait_for(tool.begun.wait(), 10)
        chat.says("/steer in Kyoto")
        await chat.until(lambda: say("en", "busy_steered") in chat.texts())
        tool.go.set()
        await chat.until(lambda: any("Answer" in text for text in chat.texts()))
        assert asked(chat.requests[1]) == "in Kyoto"
        assert chat.texts().count(say("en", "busy_steered")) == 1


@pytest.mark.rule("CH-2")
async def test_a_message_deleted_while_it_waits_is_not_answered_and_an_edited_one_in_its_new_words(tmp_path: Path) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with talk(tmp_path, script, config={"busy": {"mode": "queue"}}) as chat:
        chat.says("first")
        await chat.thinking()
        platform = chat.platform
        secret = platform.says("c1", "my secret")
        typo = platform.says("c1", "waht is that?")
        await chat.until(lambda: len(platform.reactions) == 2)
        platform.deletes(secret)
        platform.edits(typo, "what is that?")
        await chat.received()
        go.set()
        await chat.shows(["Re: first", "Re: what is that?"])
        assert "secret" not in str([request.messages for request in chat.requests])
