"""Delivery across platforms, as people see it (kinds DL-01 to DL-19 and DL-24): a whole gateway, and what its peer shows.

Where a case names one platform, its kind is tried on loopback platforms that can much (edits, keys, look-ups) and little.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from agent.errors import ModelMisconfigured
from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Fail, Reply, Say, Until, Wait
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account
from channels.port import Capabilities
from gateway.access import Rules
from gateway.channel_set import Plan
from gateway.config import Config
from gateway.language import say
from memory.database import Database, sqlite_url
from tests.harness import running
from tests.talks import Talk, asked, model, talk

T = TypeVar("T")
MUCH = CAPABILITIES
LITTLE = replace(
    CAPABILITIES, edit_interval_s=None, group_edit_interval_s=None, typing_refresh_s=None, reactions=False, resend_key_s=None, reconcile=False
)
PLATFORMS = [pytest.param(MUCH, id="much"), pytest.param(LITTLE, id="little")]
STORY = "Once upon a time there was a fox who lived beside a quiet river."


def echo(request: ModelRequest) -> Reply:
    return f"Re: {asked(request)}"


def story(go: asyncio.Event) -> Callable[[ModelRequest], Reply]:
    """Half an answer, then a pause until `go`, then the other half."""
    return lambda request: [Say(STORY), Until(go), Say(f" The end of {asked(request)}.")]


# Nothing is lost at start, stop and change


class Changing:
    """Settings of an account that differ from themselves once the operator changed them."""

    changed = False

    def __eq__(self, other: object) -> bool:
        return not self.changed

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.case("DL-01")
@pytest.mark.rule("CH-103")
@pytest.mark.parametrize("can", PLATFORMS)
async def test_an_answer_in_flight_survives_the_restart_of_its_channel(tmp_path: Path, can: Capabilities) -> None:
    platform, settings, go = LoopbackPlatform(hold_s=0.05), Changing(), asyncio.Event()
    built: list[LoopbackChannel] = []

    def build() -> LoopbackChannel:
        built.append(LoopbackChannel(platform, capabilities=can, start_after=platform.acknowledged))
        return built[-1]

    everybody = Rules(allow=frozenset({"*"}))
    plan = Plan(account=Account(channel="loopback"), settings=settings, capabilities=can, build=build, rules=lambda: everybody)
    script = model(story(go))
    async with running(tmp_path, script, channels=(plan,)) as gateway:
        chat = Talk(platform, gateway, script)
        chat.says("a story")
        await chat.thinking()
        await asyncio.sleep(0.3)
        settings.changed = True
        page = await gateway.chat()
        await gateway.say(page, "/reload")
        await chat.until(lambda: len(built) == 2)
        settings.changed = False
        go.set()
        await chat.shows([f"{STORY} The end of a story."])
        chat.says("another")
        await chat.shows([f"{STORY} The end of a story.", f"{STORY} The end of another."])


@pytest.mark.case("DL-01")
@pytest.mark.rule("CH-100", "CH-96")
@pytest.mark.parametrize("can", PLATFORMS)
@pytest.mark.parametrize("drain_s", [5.0, 0.2])
async def test_an_answer_in_flight_survives_the_end_of_the_process(tmp_path: Path, can: Capabilities, drain_s: float) -> None:
    """With time it is finished; without, it is taken up again at the next start and replaces what was on show."""
    platform, go = LoopbackPlatform(hold_s=0.05), asyncio.Event()
    config = {"delivery": {"drain_s": drain_s}}
    async with talk(tmp_path, model(story(go)), platform=platform, can=can, config=config) as chat:
        chat.says("a story")
        await chat.thinking()
        await asyncio.sleep(0.5)
        chat.gateway.stop.set()
        if drain_s > 1:
            go.set()
    if drain_s > 1:
        assert platform.texts() == [f"{STORY} The end of a story."]
    go.set()
    async with talk(tmp_path, model(story(go)), platform=platform, can=can) as chat:
        await chat.shows([f"{STORY} The end of a story."])
        assert len(chat.requests) == (0 if drain_s > 1 else 1)


@pytest.mark.case("DL-02")
@pytest.mark.rule("CH-50", "CH-10")
async def test_nothing_is_acknowledged_before_it_is_stored(tmp_path: Path) -> None:
    free = threading.Event()

    class SlowDatabase(Database):
        def write_now(self, work: Callable[[sa.Connection], T]) -> T:
            free.wait(10)
            return super().write_now(work)

    def slow(config: Config) -> Database:
        return SlowDatabase(sqlite_url(config.data_dir / "yumegate.db"))

    free.set()
    async with talk(tmp_path, model(echo), database=slow) as chat:
        free.clear()
        chat.says("hello")
        page = asyncio.ensure_future(chat.gateway.post("/api/chats", {}))
        await asyncio.sleep(0.3)
        assert (chat.platform.acknowledged, page.done()) == (0, False)
        free.set()
        await chat.shows(["Re: hello"])
        assert chat.platform.acknowledged == 1
        await page


@pytest.mark.case("DL-03")
@pytest.mark.rule("CH-80", "CH-101")
@pytest.mark.parametrize("can", PLATFORMS)
async def test_an_answer_whose_sending_was_not_confirmed_goes_out_after_the_next_start(tmp_path: Path, can: Capabilities) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    platform.fail_next({"hang": True})
    async with talk(tmp_path, model(echo), platform=platform, can=can, config={"delivery": {"drain_s": 0.1}}) as chat:
        chat.says("hello")
        await chat.until(lambda: any(call.name == "send" for call in platform.calls))
        assert platform.texts() == []
    async with talk(tmp_path, model(echo), platform=platform, can=can) as chat:
        (text,) = await chat.shown()
        assert text.startswith("Re: hello")
        assert (say("en", "sent_again") in text) == (can is LITTLE), "who cannot tell says so"
        assert chat.requests == []


@pytest.mark.case("DL-04")
@pytest.mark.rule("CH-50", "CH-55")
async def test_what_waited_while_we_were_away_is_answered_in_order_and_in_one_turn(tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    for n in range(6):
        platform.says("c1", f"message {n}", at=datetime.now(UTC) - timedelta(minutes=70 - n))
    platform.says("c1", "of last week", at=datetime.now(UTC) - timedelta(days=7))
    async with talk(tmp_path, model(echo), platform=platform) as chat:
        await chat.shows(["Re: " + "\n".join(f"message {n}" for n in range(6))])
        (request,) = chat.requests
        assert "your message waited" in request.messages[-1].text
        assert await chat.gateway.get("/readyz")
        chat.says("and now?")
        assert len(await chat.shown(2)) == 2
        assert "of last week" in str(chat.requests[1].messages), "history, not answered"
        assert "waited" not in chat.requests[1].messages[-1].text


# Messages during a run


@pytest.mark.case("DL-05")
@pytest.mark.rule("CH-70", "CH-66")
@pytest.mark.parametrize("can", PLATFORMS)
@pytest.mark.parametrize("mode", ["steer", "queue"])
async def test_a_burst_during_a_run_reaches_the_model_whole_and_in_order(tmp_path: Path, can: Capabilities, mode: str) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with talk(tmp_path, script, can=can, config={"busy": {"mode": mode}}) as chat:
        chat.says("long question")
        await chat.thinking()
        for n in range(1, 6):
            chat.says(str(n))
            await asyncio.sleep(0.02)
        go.set()
        await chat.until(lambda: any("5" in text for text in chat.texts()))
        assert "\n".join(chat.questions[1:]).split() == ["1", "2", "3", "4", "5"]


@pytest.mark.case("DL-05")
@pytest.mark.rule("CH-63", "CH-119")
async def test_beyond_what_may_wait_a_message_is_refused_with_one_visible_line(tmp_path: Path) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    config = {"busy": {"mode": "queue", "waiting_max": 3}}
    async with talk(tmp_path, script, config=config) as chat:
        chat.says("long question")
        await chat.thinking()
        for n in range(1, 8):  # one by one: what comes in one delivery is counted before any of it waits
            chat.says(str(n))
            await chat.received()
        full = say("en", "busy_full", count=3)
        await chat.until(lambda: full in chat.texts())
        chat.says("/why")
        await chat.until(lambda: any("full" in text for text in chat.texts()))
        go.set()
        await chat.until(lambda: any("3" in text for text in chat.texts() if text.startswith("Re: 1")))
        assert chat.questions[1:] == ["1\n2\n3"]
        assert chat.texts().count(full) == 1


# Silence and wrong place


@pytest.mark.case("DL-08")
@pytest.mark.rule("CH-141", "CH-83")
@pytest.mark.parametrize("answer", ["```\n```", "", " \n", "\u200b"])
async def test_an_answer_without_words_is_told_and_not_silence(tmp_path: Path, answer: str) -> None:
    async with talk(tmp_path, model(lambda _: answer)) as chat:
        chat.says("@yume hello", chat="g1", group=True)
        await chat.shows([say("en", "empty")], chat="g1")
        assert chat.texts("u1") == []


@pytest.mark.rule("CH-144")
async def test_the_word_for_silence_is_silence(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: "[silent]" if "quiet" in asked(request) else "[silent] is a word")) as chat:
        chat.says("be quiet")
        await chat.thinking()
        chat.says("what is [silent]?")
        await chat.shows(["[silent] is a word"])


@pytest.mark.rule("CH-83", "CH-28", "CH-20")
async def test_an_answer_goes_to_the_chat_and_topic_of_its_question(tmp_path: Path) -> None:
    async with talk(tmp_path, model(echo)) as chat:
        asked_in = chat.says("@yume in the topic", chat="g1", group=True, thread="t7", parent="g1")
        await chat.shown(chat="g1")
        (shown,) = chat.platform.shown
        assert (shown.address.chat_id, shown.address.thread_id, shown.reply_to) == ("g1", "t7", asked_in)
        assert shown.text.endswith("in the topic")


@pytest.mark.case("DL-09")
@pytest.mark.rule("CH-37")
@pytest.mark.parametrize("ends", ["well", "badly"])
async def test_a_long_run_shows_that_it_is_alive_and_stops_showing_it(tmp_path: Path, ends: str) -> None:
    go = asyncio.Event()
    last: Reply = Say("done") if ends == "well" else Fail(ModelMisconfigured("no key"))
    script = model(lambda _: [Until(go), last])
    async with talk(tmp_path, script, can=replace(MUCH, typing_refresh_s=0.1)) as chat:
        chat.says("a long task")
        await chat.until(lambda: chat.platform.typing.get("loopback:main:c1"), within_s=2)
        await chat.until(lambda: len(chat.platform.typed["loopback:main:c1"]) > 3)
        go.set()
        await chat.shown()
        await chat.until(lambda: not chat.platform.typing["loopback:main:c1"], within_s=2)
        assert chat.texts() == (["done"] if ends == "well" else [say("en", "model_setup")])


# Known messages come again


@pytest.mark.case("DL-10")
@pytest.mark.rule("CH-51", "CH-23", "CH-52")
async def test_what_was_answered_is_not_answered_again_when_the_place_in_the_feed_is_lost(tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    async with talk(tmp_path, model(echo), platform=platform, config={"rate": {"person_per_minute": 0, "chat_per_minute": 0}}) as chat:
        for n in range(25):
            platform.says(f"c{n % 5}", f"message {n}")
            platform.says("c9", f"/persona {n}")
        await chat.until(lambda: len(platform.texts("c9")) == 25)
        await chat.until(lambda: sum("message" in text for text in platform.texts()) >= 5)
        await asyncio.sleep(0.5)
        before = len(platform.shown)
    platform.acknowledged = 0
    async with talk(tmp_path, model(echo), platform=platform) as chat:
        await chat.until(lambda: platform.acknowledged == 50)
        await asyncio.sleep(0.3)
        assert (len(platform.shown), chat.requests) == (before, [])


# Sent twice


@pytest.mark.case("DL-11")
@pytest.mark.rule("CH-96", "CH-97")
async def test_the_preview_becomes_the_first_part_and_its_text_is_nowhere_else(tmp_path: Path) -> None:
    more, go = asyncio.Event(), asyncio.Event()
    whole = f"{STORY} " + "word " * 900
    script = model(lambda _: [Say(STORY), Until(more), Say(f" {'word ' * 100}"), Until(go), Say("word " * 800)])
    async with talk(tmp_path, script) as chat:
        chat.says("a long story")
        await chat.until(lambda: chat.texts() == [STORY])
        more.set()
        await chat.until(lambda: chat.messages()[0].edits)
        preview = chat.messages()[0].id
        go.set()
        first, second = await chat.shown(2)
        assert chat.messages()[0].id == preview
        assert f"{first} {second}".split() == whole.split()
        assert sum(text.count(STORY) for text in chat.texts()) == 1
        assert chat.messages()[0].reply_to == "m1"


@pytest.mark.rule("CH-96")
async def test_throttling_cuts_nothing_off(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with talk(tmp_path, model(lambda _: [Say("He"), Until(go), Say("llo")])) as chat:
        chat.says("greet me")
        await chat.until(lambda: chat.texts() == ["He"])
        go.set()
        await chat.until(lambda: chat.texts() == ["Hello"])
        assert len(chat.platform.shown) == 1


@pytest.mark.case("DL-12")
@pytest.mark.rule("CH-34", "CH-80")
@pytest.mark.parametrize("can", PLATFORMS)
async def test_a_send_that_surely_failed_is_repeated_and_a_doubtful_one_is_settled(tmp_path: Path, can: Capabilities) -> None:
    async with talk(tmp_path, model(echo), can=replace(can, edit_interval_s=None)) as chat:
        chat.platform.fail_next({"unreachable": True})
        chat.says("one")
        await chat.shows(["Re: one"])
        chat.platform.fail_next({"unknown": "after"})
        chat.says("two")
        await chat.shows(["Re: one", "Re: two", *([] if can is MUCH else [f"Re: two\n{say('en', 'sent_again')}"])])


# Late and out of date


@pytest.mark.case("DL-14")
@pytest.mark.rule("CH-60")
@pytest.mark.parametrize("reset", ["/clear", "/new"])
async def test_every_answer_belongs_to_its_question_and_a_reset_lets_nothing_of_before_through(tmp_path: Path, reset: str) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Say("Half an answer. "), Until(go), Say(f"Re: {asked(request)}")] if "slow" in asked(request) else echo(request))
    async with talk(tmp_path, script, config={"busy": {"mode": "queue"}}) as chat:
        first = chat.says("slow one")
        await chat.thinking()
        second = chat.says("quick one")
        await chat.until(lambda: chat.platform.reactions)
        go.set()
        await chat.shows(["Half an answer. Re: slow one", "Re: quick one"])
        assert [message.reply_to for message in chat.messages()] == [first, second]
        talked = [(message.role, message.text.rpartition("]\n\n")[2]) for message in chat.requests[1].messages[1:]]
        assert talked == [(Role.USER, "slow one"), (Role.ASSISTANT, "Half an answer. Re: slow one"), (Role.USER, "quick one")]
        go.clear()
        chat.says("slow again")
        await chat.thinking(3)
        chat.says("waiting")
        await chat.until(lambda: len(chat.platform.reactions) == 2)
        chat.says(reset)
        await chat.until(lambda: len(chat.texts()) == 3)
        go.set()
        last = chat.says("fresh")
        await chat.until(lambda: "Re: fresh" in chat.texts())
        await asyncio.sleep(0.2)
        assert len(chat.texts()) == 4, chat.texts()
        assert chat.messages()[3].reply_to == last
        assert [message.text.rpartition("]\n\n")[2] for message in chat.requests[-1].messages[1:]] == ["fresh"]


@pytest.mark.case("DL-15")
@pytest.mark.rule("CH-101")
async def test_a_restart_with_nothing_pending_is_silent(tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    for restart in range(3):
        async with talk(tmp_path, model(echo), platform=platform) as chat:
            if restart == 0:
                chat.says("hello")
                await chat.shown()
            await asyncio.sleep(0.3)
    assert platform.texts() == ["Re: hello"]


# Deaf, busy, banned


@pytest.mark.case("DL-17")
async def test_an_idle_gateway_leaves_the_processor_alone(tmp_path: Path) -> None:
    async with talk(tmp_path, model(echo), platform=LoopbackPlatform(hold_s=5.0)) as chat:
        chat.says("hello")
        await chat.shown()
        await chat.gateway.settled()
        await asyncio.sleep(0.5)
        before, began = time.process_time(), time.monotonic()
        await asyncio.sleep(2)
        assert (time.process_time() - before) / (time.monotonic() - began) < 0.02


@pytest.mark.case("DL-18")
@pytest.mark.rule("CH-91", "CH-90", "CH-92")
async def test_during_a_ban_there_is_not_a_single_call_and_then_the_answer_once(tmp_path: Path) -> None:
    more = asyncio.Event()
    script = model(lambda _: [Say(STORY), Until(more), Say(" More."), Wait(0.5), Say(" And more."), Wait(0.5), Say(" The end.")])
    async with talk(tmp_path, script, can=replace(MUCH, typing_refresh_s=0.1)) as chat:
        chat.says("a story")
        await chat.until(lambda: chat.texts() == [STORY])
        chat.platform.fail_next({"later": 2.5})
        more.set()
        await chat.until(lambda: not chat.platform.faults)
        banned = chat.platform.calls[-1].at
        chat.says("hello", chat="c2")
        await chat.until(lambda: chat.texts("c2"))
        await chat.until(lambda: chat.texts() == [f"{STORY} More. And more. The end."])
        here = [call for call in chat.platform.calls if call.chat_id == "c1" and call.at > banned]
        assert (here[0].at - banned).total_seconds() >= 3.0
        assert [call.name for call in here if call.name != "typing"] == ["edit"]


@pytest.mark.case("DL-19")
@pytest.mark.rule("CH-91", "CH-92")
async def test_a_final_that_must_wait_is_delivered_whole_when_it_may(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with talk(tmp_path, model(story(go))) as chat:
        chat.says("a story")
        await chat.until(lambda: chat.texts() == [STORY])
        chat.platform.fail_next({"later": 1})
        go.set()
        await chat.until(lambda: chat.texts() == [f"{STORY} The end of a story."])
        edits = [call.at for call in chat.platform.calls if call.name == "edit"]
        assert max((after - before).total_seconds() for before, after in pairwise(edits)) >= 1.5


# Text units and other limits


@pytest.mark.rule("CH-7", "CH-30")
async def test_files_are_fetched_after_the_message_is_stored_and_reach_the_model(tmp_path: Path) -> None:
    async with talk(tmp_path, model(echo)) as chat:
        chat.platform.files |= {"a": b"the tea is at four", "b": b"\x89PNG\r\n\x1a\n cat", "big": b"x" * 20_000_001}
        files: list[dict[str, Any]] = [
            {"kind": "file", "name": "../../plan.txt", "ref": "a", "size": 18},
            {"kind": "image", "name": "cat.png", "ref": "b", "size": 12, "mime": "text/html"},
            {"kind": "file", "name": "big.bin", "ref": "big", "size": 20_000_001},
            {"kind": "voice", "name": "gone.ogg", "ref": "none", "size": 5},
        ]
        chat.says("what is in these?", files=files)
        await chat.shown()
        newest = chat.requests[0].messages[-1]
        assert re.search(r"\[file plan\.txt[^]/]*\]\nthe tea is at four\n", newest.text)
        assert [image.mime for image in newest.images] == ["image/png"]
        assert "[file big.bin: could not be fetched]" in newest.text
        assert "[voice gone.ogg: could not be fetched]" in newest.text
        kept = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file() and path.read_bytes() == b"the tea is at four"]
        assert len(kept) == 1
        assert "plan" not in kept[0].name


# Bots, strange events


@pytest.mark.rule("CH-120")
async def test_two_bots_that_answer_each_other_come_to_rest(tmp_path: Path) -> None:
    rules = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}), bots=frozenset({"robot"}))
    config = {"rate": {"person_per_minute": 0, "chat_per_minute": 0}}
    async with talk(tmp_path, model(echo), rules=rules, config=config) as chat:
        for n in range(40):
            before = len(chat.texts("g1"))
            chat.says(f"@yume answer {n}", chat="g1", group=True, sender="robot", bot=True)
            if n < 20:
                await chat.until(lambda before=before: len(chat.texts("g1")) > before)
        await chat.until(lambda: chat.platform.acknowledged == 40)
        await asyncio.sleep(0.3)
        assert len(chat.texts("g1")) == 20
        chat.says("@yume and me?", chat="g1", group=True, sender="ann")
        assert len(await chat.shown(21, chat="g1")) == 21


@pytest.mark.rule("CH-52", "WD-115", "CH-118")
async def test_a_refusal_that_comes_again_is_not_told_again_and_harms_nobody(tmp_path: Path) -> None:
    ahead = timedelta()
    async with talk(tmp_path, model(echo), clock=lambda: datetime.now(UTC) + ahead) as chat:
        update = chat.platform.says("c1", "/reload")
        await chat.shows([say("en", "not_allowed", role="admin")])
        ahead = timedelta(minutes=5)
        chat.platform.repeats(update)
        await chat.until(lambda: chat.platform.acknowledged == 2)
        chat.says("still there?")
        await chat.shows([say("en", "not_allowed", role="admin"), "Re: still there?"])


@pytest.mark.rule("CH-4", "CH-27")
async def test_strange_events_are_one_line_per_kind_and_hour(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with talk(tmp_path, model(echo)) as chat:
        for kind in ("hologram", "hologram", "telepathy", "hologram"):
            chat.says("?", kind=kind)
        chat.says("hello")
        await chat.shows(["Re: hello"])
    lines = [record.getMessage() for record in caplog.records if "cannot be read" in record.getMessage()]
    assert [("hologram" in line, "telepathy" in line) for line in lines] == [(True, False), (False, True)]
