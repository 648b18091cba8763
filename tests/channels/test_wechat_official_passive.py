"""The passive window of the Official Account (3.2): what a person sees, whatever an answer takes, against the vendor's side with its tries.

Both sides are in one loop, whose time is theirs: no machine is too busy for the vendor's five seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from channels.given import ReadFile, no_file
from channels.message import Account, Attachment
from channels.port import Arrival, OutboundPart, SendOutcome
from channels.wechat.official.adapter import OfficialChannel
from channels.wechat.official.settings import OfficialSettings
from gateway.language import say
from memory.database import Database
from tests.leap import leaping
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_house import House, speak
from tests.peers.wechat.official_server import AES_KEY, APP_ID, APP_SECRET, TOKEN, UNAVAILABLE, FakeOfficial, World
from tests.quick import clock

ACCOUNT = Account(channel="wechat_official")
ANN, BOB = "o_user_A", "o_user_B"
THINKING = say("en", "wechat_thinking")


@pytest.fixture(params=["plain", "compatible", "aes"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server() -> FakeOfficial:
    return FakeOfficial(World(clock=clock))


def in_their_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test on a loop that leaps, with the vendor's side in it."""

    @wraps(test)
    async def run(*, server: FakeOfficial, **given: Any) -> None:
        async with server:
            await test(server=server, **given)

    return leaping(run)


async def until(look: Callable[[], bool], *, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not look():  # noqa: ASYNC110  # the vendor tells nobody
            await asyncio.sleep(0.1)


class Scene:
    """A gateway and the vendor. `answers`: seconds and parts for each question; any other is echoed at once."""

    def __init__(
        self, db: Database, server: FakeOfficial, answers: dict[str, tuple[float, list[str]]], *, read_file: ReadFile = no_file, **settings: Any
    ) -> None:
        self.server = server
        self.world = server.world
        self.kept = Kept()
        given = OfficialSettings(
            **{
                "app_id": APP_ID, "token": TOKEN, "aes_key": AES_KEY, "app_secret": APP_SECRET, "mode": server.world.mode,
                "api_base": server.url,
            } | settings
        )  # fmt: skip

        def make() -> OfficialChannel:
            return OfficialChannel(given, vault=self.kept, account=ACCOUNT, say=speak, read_file=read_file, clock=clock, pace_s=0.01)

        self.house = House(
            db=db, account=ACCOUNT, make=make, script=lambda text: answers.get(text, (0, [f"Re: {text}"])), clock=clock, second=1.0,
        )  # fmt: skip

    def running(self) -> Any:
        return self.house.running(lambda url: setattr(self.server, "callback", url))

    async def sees(self, *texts: str, person: str = ANN) -> None:
        """Until the person sees exactly this, and still does a little later."""
        try:
            await until(lambda: self.world.view(person) == list(texts))
        except TimeoutError:
            pass  # the difference says more
        await asyncio.sleep(2)
        assert self.world.view(person) == list(texts)
        assert UNAVAILABLE not in self.world.view(person)

    def verdicts(self) -> list[str]:
        return [each.verdict for each in self.world.tries]


@pytest.mark.rule("WX-61", "WX-66", "WX-67", "WX-73", "WX-180", "WX-181", "WX-182", "WX-186")
@in_their_time
async def test_what_is_ready_in_time_is_the_reply_to_the_first_try(sqlite: Database, server: FakeOfficial, mode: str) -> None:
    server.world.mode = mode
    scene = Scene(sqlite, server, {"hello": (2, ["你好😀"])})
    async with scene.running():
        server.says(ANN, "hello")
        await scene.sees("你好😀")
        await scene.house.settled("sent")
    assert scene.verdicts() == ["shown"]


@pytest.mark.case("WE-01")
@pytest.mark.rule("WX-63", "WX-66", "WX-67", "WX-68", "CH-52", "CH-12", "WX-186")
@pytest.mark.parametrize(("takes_s", "verdicts"), [(7, ["unanswered", "shown"]), (12, ["unanswered", "unanswered", "shown"])])
@in_their_time
async def test_later_tries_join_the_run_of_the_first(sqlite: Database, server: FakeOfficial, takes_s: float, verdicts: list[str]) -> None:
    scene = Scene(sqlite, server, {"hello": (takes_s, ["at last"])})
    async with scene.running():
        server.says(ANN, "hello")
        await scene.sees("at last")
        await scene.house.settled("sent")
    assert scene.verdicts() == verdicts
    assert scene.house.questions == ["hello"]
    assert await scene.house.rows() == 1
    assert {each.arrival for each in scene.house.accepted[1:]} == {Arrival.DUPLICATE}
    assert all(int(each.msg_id) > 2**53 for each in server.world.tries)


@pytest.mark.case("WE-08", "WE-10")
@pytest.mark.rule("WX-69", "WX-72", "WX-186")
@in_their_time
async def test_without_the_api_a_late_answer_waits_for_the_next_message(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"hello": (20, ["at last"]), "ok?": (1, ["yes"])})
    async with scene.running():
        server.says(ANN, "hello")
        await scene.sees(THINKING)
        await scene.house.settled("waiting")  # in the store, not delivered
        server.says(ANN, "ok?")
        await until(lambda: len(server.world.view(ANN)) == 2)
        await scene.house.settled("sent", "sent")
    first, second = server.world.view(ANN)
    assert first == THINKING
    assert second == "“hello”\nat last\n\n“ok?”\nyes"
    assert scene.house.questions == ["hello", "ok?"]


@pytest.mark.rule("WX-72")
@pytest.mark.parametrize("word", ["继续", "more", "続き", "1", " More "])
@in_their_time
async def test_a_word_that_adds_nothing_only_fetches(sqlite: Database, server: FakeOfficial, word: str) -> None:
    scene = Scene(sqlite, server, {"hello": (25, ["at last"])}, passive_tries=1)
    async with scene.running():
        server.says(ANN, word)
        await scene.sees(f"Re: {word}")  # nothing waits: it is a message like any other
        server.says(ANN, "hello")
        await scene.sees(f"Re: {word}", THINKING)
        server.says(ANN, word)  # still running: nothing new is asked
        await scene.sees(f"Re: {word}", THINKING, say("zh" if word == "继续" else "ja" if word == "続き" else "en", "wechat_thinking"))
        await scene.house.settled("sent", "waiting")
        server.says(ANN, word)
        await until(lambda: len(server.world.view(ANN)) == 4)
        await scene.house.settled("sent", "sent")
    assert server.world.view(ANN)[-1].endswith("at last")
    assert scene.house.questions == [word, "hello"]


@pytest.mark.rule("WX-72")
@in_their_time
async def test_a_word_that_only_fetches_asks_nothing_while_the_outbox_has_the_answer_in_hand(
    sqlite: Database, server: FakeOfficial, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, in_hand, real = Scene(sqlite, server, {"hello": (9, ["at last"])}, passive_tries=1), asyncio.Event(), OfficialChannel.send

    async def slow(channel: OfficialChannel, part: OutboundPart) -> SendOutcome:
        in_hand.set()
        await asyncio.sleep(0.1)
        return await real(channel, part)

    monkeypatch.setattr(OfficialChannel, "send", slow)
    async with scene.running() as channel:
        server.says(ANN, "hello")
        await scene.sees(THINKING)
        await in_hand.wait()
        vars(channel)["_answering"].owed.clear()  # as after a restart
        server.says(ANN, "more")
        await until(lambda: len(server.world.view(ANN)) == 2)
        await scene.house.settled("sent")
    assert server.world.view(ANN)[-1].endswith("at last")
    assert scene.house.questions == ["hello"]


@pytest.mark.case("WE-09")
@pytest.mark.rule("WX-72", "WX-183")
@in_their_time
async def test_a_new_question_during_a_run_is_never_swallowed(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"today?": (9, ["sun"]), "and tomorrow?": (12, ["rain"])}, passive_tries=1)
    async with scene.running():
        server.says(ANN, "today?")
        await scene.sees(THINKING)
        server.says(ANN, "and tomorrow?")
        await until(lambda: len(server.world.view(ANN)) == 2)
        await until(lambda: len(scene.house.questions) == 2)
        await scene.house.settled("sent", "waiting")
        server.says(ANN, "more")
        await until(lambda: len(server.world.view(ANN)) == 3)
    assert scene.house.questions == ["today?", "and tomorrow?"]
    assert server.world.view(ANN)[1:] == ["“today?”\nsun", "“and tomorrow…”\nrain"], "in order, and each says whose it is"


@pytest.mark.rule("WX-71", "WX-72", "CH-80")
@in_their_time
async def test_what_one_reply_cannot_hold_waits_and_says_so(sqlite: Database, server: FakeOfficial) -> None:
    parts = [letter * 1800 for letter in "abc"]
    scene = Scene(sqlite, server, {"long": (1, parts)})
    async with scene.running():
        server.says(ANN, "long")
        await scene.sees(f"{parts[0]}\n\n(2 more: send any message)")
        await scene.house.settled("sent", "waiting", "waiting")
    async with scene.running():  # they survive a restart
        server.says(ANN, "more")
        await until(lambda: len(server.world.view(ANN)) == 2)
        server.says(ANN, "more")
        await until(lambda: len(server.world.view(ANN)) == 3)
        await scene.house.settled("sent", "sent", "sent")
    assert server.world.view(ANN) == [f"{parts[0]}\n\n(2 more: send any message)", f"{parts[1]}\n\n(1 more: send any message)", parts[2]]


@pytest.mark.rule("WX-72")
@in_their_time
async def test_without_the_api_another_question_costs_no_part_of_a_long_answer(sqlite: Database, server: FakeOfficial) -> None:
    parts = [letter * 1800 for letter in "abcdefgh"]
    scene = Scene(sqlite, server, {"long": (1, parts)})
    async with scene.running():
        server.says(ANN, "long")
        await scene.house.settled("sent", *["waiting"] * 7)
        for seen, says in enumerate(["another", *["more"] * 6], 2):
            server.says(ANN, says)
            await until(lambda seen=seen: len(server.world.view(ANN)) == seen)
        await scene.house.settled(*["sent"] * 9)
    shown = "".join(server.world.view(ANN))
    assert [part in shown for part in parts] == [True] * 8
    assert shown.endswith("Re: another")


@pytest.mark.rule("WX-69", "WX-71", "WX-80", "WX-186")
@in_their_time
async def test_with_the_api_a_late_answer_and_further_parts_come_by_themselves(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"late": (20, ["at last"]), "long": (1, ["a" * 2000, "b" * 2000])}, customer_service=True)
    async with scene.running():
        server.says(ANN, "late")
        await scene.sees("at last")
        assert scene.verdicts() == ["unanswered", "unanswered", "silent"]
        server.says(BOB, "long")
        await scene.sees("a" * 2000, "b" * 2000, person=BOB)
    assert [shown.way for shown in server.world.shown] == ["api", "reply", "api"]


@pytest.mark.rule("WX-83", "WX-71")
@pytest.mark.parametrize("texts", [["see"], ["first", "see"]])
@in_their_time
async def test_a_picture_that_is_ready_in_time_is_shown_by_the_api_and_named_where_there_is_none(
    sqlite: Database, server: FakeOfficial, texts: list[str]
) -> None:
    picture = Attachment(kind="image", name="a.png", mime="image/png", stored_path="a", size=3)

    async def read_file(_attachment: Attachment) -> bytes:
        return b"png"

    scene = Scene(sqlite, server, {"hello": (1, texts)}, customer_service=True, read_file=read_file)
    scene.house.files = (picture,)
    async with scene.running():
        server.says(ANN, "hello")
        await until(lambda: any(shown.kind == "image" for shown in server.world.shown))
        await scene.house.settled(*["sent"] * len(texts))
    assert [(shown.kind, shown.way) for shown in server.world.shown][-2:] == [("text", "api"), ("image", "api")]
    assert [shown.way for shown in server.world.shown][:-2] == ["reply"] * (len(texts) - 1)


@pytest.mark.rule("WX-70", "WX-181")
@in_their_time
async def test_the_same_reply_is_given_again_to_a_try_that_comes_nonetheless(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"hello": (1, ["once"])})
    async with scene.running():
        message = server.says(ANN, "hello")
        await scene.sees("once")
        server.deliver(message)
        await until(lambda: len(server.world.tries) == 2)
        assert await scene.house.states() == ["sending"], "not before it has been quiet for 6 s"
        await scene.house.settled("sent")
    assert scene.verdicts() == ["shown", "shown"]
    assert server.world.view(ANN) == ["once", "once"]
    assert scene.house.questions == ["hello"]


@pytest.mark.rule("WX-186", "CH-101", "WX-72")
@in_their_time
async def test_killed_at_3_seconds_the_next_try_finds_the_answer(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"hello": (7, ["at last"])})
    async with scene.running():
        server.says(ANN, "hello")
        await asyncio.sleep(3)
    async with scene.running():
        await scene.sees("at last")
        await scene.house.settled("sent")
    assert await scene.house.rows() == 1


@pytest.mark.rule("WX-186", "CH-101")
@in_their_time
async def test_killed_at_12_seconds_nothing_is_said_twice(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"hello": (2, ["soon"]), "slow": (16, ["at last"])}, passive_tries=1)
    async with scene.running():
        server.says(ANN, "hello")
        server.says(BOB, "slow")
        await asyncio.sleep(12)
    async with scene.running():
        await scene.sees("soon")
        await scene.house.settled("sent", "waiting")
        server.says(BOB, "more")
        await until(lambda: len(server.world.view(BOB)) == 2)
    assert server.world.view(ANN) == ["soon"]
    assert server.world.view(BOB) == [THINKING, "at last"]


@pytest.mark.rule("WX-68", "WX-69", "CH-23")
@in_their_time
async def test_after_a_restart_the_last_try_is_known_by_the_message_s_age(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"hello": (60, ["never in time"])})
    async with scene.running():
        # The message is 11 of its seconds old when the new life first sees it: that is the last try.
        old = server.world.message(ANN, Content="hello", CreateTime=str(int(clock().timestamp()) - 11))
        server.world.tries_max = 1
        server.deliver(old)
        await until(lambda: len(server.world.tries) == 1)
    server.world.shown.clear()
    async with scene.running():
        server.deliver(old)
        await scene.sees(THINKING)


@pytest.mark.case("WE-03", "WE-04")
@pytest.mark.rule("WX-8", "WX-65", "WX-182", "WX-183")
@in_their_time
async def test_a_reply_with_everything_xml_cannot_hold_is_shown(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"odd": (0, ["a]]>b & <c>\x00\x08😀"])})
    async with scene.running():
        server.says(ANN, "odd")
        await scene.sees("a]]>b & <c>😀")


@pytest.mark.case("WE-03")
@pytest.mark.rule("WX-65", "CH-24")
@in_their_time
async def test_a_fault_of_ours_is_silence_and_at_last_an_apology(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {})

    def broken() -> None:
        raise RuntimeError("the disk is full")

    async with scene.running():
        scene.house.fails = broken
        server.says(ANN, "hello")
        await scene.sees(say("en", "failed"))
    assert scene.verdicts() == ["unanswered", "unanswered", "shown"]
    assert await scene.house.rows() == 0


@pytest.mark.rule("WX-183", "WX-72", "CH-25")
@in_their_time
async def test_two_messages_in_flight_are_both_answered(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {"one": (2, ["first answer"]), "two": (3, ["second answer"])})
    async with scene.running():
        server.says(ANN, "one")
        server.says(ANN, "two")
        await until(lambda: len(server.world.view(ANN)) == 2)
        await scene.house.settled("sent", "sent")
    told = "\n".join(server.world.view(ANN))
    assert "first answer" in told
    assert "second answer" in told
    assert UNAVAILABLE not in told


@pytest.mark.rule("WX-62", "WX-65")
@in_their_time
async def test_a_stranger_costs_nobody_a_try(sqlite: Database, server: FakeOfficial) -> None:
    scene = Scene(sqlite, server, {})
    scene.house.rules = type(scene.house.rules)()
    async with scene.running():
        server.says(ANN, "hello")
        await until(lambda: len(server.world.tries) == 1)
    assert scene.verdicts() == ["silent"]
    assert scene.house.questions == []
