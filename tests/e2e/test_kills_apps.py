"""The gateway's process ended in the middle of things, on each chat app: whatever was written is answered once and in order after the next start.

Every app (`kill_apps.py`) times every moment times both ways to end: as a supervisor stops it (SIGTERM) and as a power cut does (SIGKILL). What a
platform does not have is left out of the tables by the app's own data, and never silently: see `docs/channels`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from gateway.language import say
from tests.e2e.conftest import Child, Household, until
from tests.e2e.kill_apps import APPS, PNG, App, Official, OfficialApi, playing
from tests.e2e.test_crash_matrix import BEGINNING, STALLED
from tests.patience import patience
from tests.peers.model.replies import Pause, Reply, text
from tests.peers.model.server import FakeModel

Ending = Callable[[Child], Any]
AGAIN = say("en", "sent_again")
ENDINGS = pytest.mark.parametrize("ending", [Child.stop, Child.kill], ids=["sigterm", "sigkill"])
SLOW_APPS = APPS[1:]  # the first stands for all in the quick suite


def apps(wanted: Callable[[type[App[Any]]], bool] = lambda _app: True, *, slow: Iterable[type[App[Any]]] = SLOW_APPS) -> Any:
    found = [pytest.param(app, id=app.name, marks=[pytest.mark.slow] if app in slow else []) for app in APPS if wanted(app)]
    return pytest.mark.parametrize("app", found, indirect=True)


@pytest.fixture
async def app(request: pytest.FixtureRequest) -> AsyncIterator[App[Any]]:
    with playing(request.param) as played:
        yield played


class House:
    """A household whose gateway speaks on one app, with a model that says the words back."""

    def __init__(self, home: Household, app: App[Any], model: FakeModel) -> None:
        self.home, self.app, self.model = home, app, model
        model.respond = echo
        port = app.port if isinstance(app, Official) else 0
        home.configure(
            model={"provider": "openai", "base_url": model.url, "name": "fake", "context_window": 100_000, "sees_images": True},
            channels={"web": {"port": 0}, **app.config},
            webhooks={"port": port},
            delivery={"drain_s": 1.0},
        )
        app.prepare(home)

    async def start(self, **options: float) -> Child:
        begun = await self.home.start(model="", **options)
        await until(self.app.is_heard)
        return begun

    async def greeted(self) -> Child:
        """Started, and the chat is one that was talked in before; the words so far are not looked at any more."""
        begun = await self.start()
        self.app.says("hello")
        await until(lambda: self.app.texts() == ["re: hello"])
        await self.home.settled()
        return begun

    @property
    def questions(self) -> list[str]:
        """What the model was asked, try by try."""
        return [words for received in self.model.requests if (words := _words(received.body))]

    def stored(self) -> int:
        """Messages that were taken in."""
        return self.home.rows("SELECT count(*) FROM inbox WHERE kind = 'message' AND state NOT IN ('ignored')")[0][0]

    async def shows(self, texts: list[str], within_s: float = 25.0) -> None:
        """Until exactly this is on show, and still is when everything is at rest."""
        try:
            await until(lambda: self.app.texts() == texts, within_s)
            await self.home.settled()
        except TimeoutError:
            pass  # the difference says more
        await asyncio.sleep(0.3)
        assert self.app.texts() == texts

    async def says_once(self, words: list[str], within_s: float = 25.0) -> None:
        """Until these words were said back; each once, and in this order, however the messages were put together."""
        try:
            await until(lambda: words[-1] in self.said(), within_s)
            await self.home.settled()
        except TimeoutError:
            pass
        await asyncio.sleep(0.3)
        assert self.said() == words, self.app.texts()

    def said(self) -> list[str]:
        """The words of the answers; a question that is quoted above its late answer is none."""
        return re.findall(r"\bw\d\b", re.sub(r"(?m)^“.*”$", "", "\n".join(self.app.texts())))


def _words(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    whole = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    return whole.rpartition("[end of notes]\n\n")[2] if "[end of notes]" in whole else ""


def _pictures(body: dict[str, Any]) -> list[bytes]:
    found = re.findall(r"data:image/[a-z]+;base64,([A-Za-z0-9+/=]+)", json.dumps(body["messages"]))
    return [base64.b64decode(picture) for picture in found]


def echo(body: dict[str, Any]) -> Reply:
    asked = _words(body)
    return text(f"re: {asked}" if asked else "A title")


def slow_echo(body: dict[str, Any]) -> Reply:
    """Too late for the vendor's call, but for the greeting."""
    asked = _words(body)
    return echo(body).after(Pause(6)) if asked and asked != "hello" else echo(body)


@pytest.fixture
async def house(household: Household, app: App[Any], model: FakeModel) -> House:
    return House(household, app, model)


ALBUM_S = 4.0  # an album is still held when the process ends, even if the machine stands still for a moment
BURST = ["w1", "w2", "w3", "w4", "w5"]


# -- a burst of five ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "RL-2", "CH-50", "CH-65", "CH-66", "CH-101")
@ENDINGS
@apps()
async def test_a_burst_that_was_taken_in_and_not_begun(house: House, ending: Ending) -> None:
    ended = await house.start()
    for word in BURST:
        house.app.says(word)
    await until(lambda: house.stored() == 5)
    await ending(ended)
    await house.start()
    await house.says_once(BURST)


@pytest.mark.rule("RL-1", "RL-2", "CH-22", "CH-50", "CH-190")
@ENDINGS
@apps()
async def test_a_burst_that_goes_on_while_nobody_is_there(house: House, ending: Ending) -> None:
    ended = await house.start()
    for word in BURST[:2]:
        house.app.says(word)
    await until(lambda: house.stored() == 2)
    await ending(ended)
    for word in BURST[2:]:
        house.app.says(word)
    await house.start()
    await house.says_once(BURST)


@pytest.mark.rule("RL-1", "RL-2", "CH-70", "CH-101")
@ENDINGS
@apps()
async def test_a_burst_whose_first_message_is_with_the_model(house: House, ending: Ending) -> None:
    house.model.will(STALLED)
    ended = await house.start()
    house.app.says("w1")
    await until(lambda: house.questions == ["w1"])
    for word in BURST[1:]:
        house.app.says(word)
        await asyncio.sleep(0.02)
    await until(lambda: house.stored() == 5)
    await ending(ended)
    await house.start()
    await house.says_once(BURST)


# -- an album ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "RL-2", "CH-7", "CH-65", "CH-66")
@pytest.mark.parametrize("moment", ["held", "begun"])
@ENDINGS
@apps(lambda app: app.albums)
async def test_an_album_is_one_question_with_its_pictures_in_order(house: House, ending: Ending, moment: str) -> None:
    """Ended while the album waits for its last piece, which comes when nobody is there; or while the model looks at it."""
    if moment == "begun":
        house.model.will(STALLED)
    ended = await house.start(album_s=ALBUM_S if moment == "held" else 0.0)
    pieces = list(house.app.shares(4, "w1"))
    late = pieces[-1:] if moment == "held" and len(pieces) > 1 and house.app.keeps else []
    early = pieces[: len(pieces) - len(late)]
    for piece in early:
        piece()
    await until(lambda: house.stored() == len(early))
    if moment == "begun":
        await until(lambda: house.questions)
    await ending(ended)
    for piece in late:
        piece()
    await house.start(album_s=ALBUM_S if late else 0.0)
    await house.says_once(["w1"])
    seen = [_pictures(received.body) for received in house.model.requests if _words(received.body)][-1]
    assert [picture.removeprefix(PNG) for picture in seen] == [b"0", b"1", b"2", b"3"]


@pytest.mark.rule("RL-1", "RL-2", "CH-7", "CH-65", "CH-66")
@ENDINGS
@apps(lambda app: app.albums)
async def test_pictures_that_came_while_the_model_was_at_work_are_seen_after_it(house: House, ending: Ending) -> None:
    """They wait in line unfetched, and the turn that goes on after the start may be there before its account is."""
    house.model.will(STALLED)
    ended = await house.start()
    first, *later = house.app.shares(4, "w1")
    first()
    await until(lambda: len(house.model.requests) > 0)
    for piece in later:
        piece()
    await until(lambda: house.stored() == 1 + len(later))
    await ending(ended)
    await house.start()
    await house.says_once(["w1"])
    seen = {picture.removeprefix(PNG) for received in house.model.requests for picture in _pictures(received.body)}
    assert seen == {b"0", b"1", b"2", b"3"}


# -- an answer that grows ----------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "RL-2", "CH-96", "CH-97", "WX-105")
@ENDINGS
@apps()
async def test_an_answer_that_was_growing(house: House, ending: Ending) -> None:
    """What was on show of it becomes the answer."""
    ended = await house.greeted()
    house.model.will(STALLED)
    house.app.says("w1")
    await until(lambda: house.questions[-1:] == ["w1"])
    if house.app.previews:
        await until(lambda: house.app.texts()[-1] == BEGINNING)
        await until(lambda: house.home.rows("SELECT 1 FROM turns WHERE json_type(preview_ids) = 'array'"))
    await ending(ended)
    await house.start()
    await house.shows(["re: hello", "re: w1"])


@pytest.mark.rule("RL-1", "CH-97", "CH-80", "WX-105")
@apps(lambda app: app.previews)
async def test_a_first_preview_that_was_shown_and_not_noted(house: House) -> None:
    """The platform's means find it, or show it once; without any, the answer says that it may be a second copy."""
    killed = await house.greeted()
    house.model.will(STALLED)
    house.app.server.witness = lambda: os.kill(killed.pid, signal.SIGKILL)
    house.app.says("w1")
    assert await killed.end() == -signal.SIGKILL
    house.app.server.witness = lambda: None
    assert house.app.texts()[-1] == BEGINNING
    await house.start()
    beside = [BEGINNING, f"re: w1\n{AGAIN}"] if house.app.name == "telegram" else ["re: w1"]
    await house.shows(["re: hello", *beside])


# -- an answer on its way ----------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "CH-80", "CH-101", "CH-185", "WX-37")
@apps(lambda app: app is not Official)
async def test_an_answer_that_was_shown_and_not_noted(house: House) -> None:
    killed = await house.greeted()
    if isinstance(house.app, OfficialApi):
        house.model.respond = slow_echo
    house.app.server.witness = lambda: os.kill(killed.pid, signal.SIGKILL)
    house.app.says("w1")
    assert await killed.end() == -signal.SIGKILL
    house.app.server.witness = lambda: None
    await house.start()
    await house.shows(["re: hello", "re: w1", *([f"re: w1\n{AGAIN}"] if house.app.tells else [])])


@pytest.mark.rule("RL-1", "RL-2", "CH-80", "CH-101")
@ENDINGS
@apps(lambda app: app is not Official)
async def test_an_answer_that_the_platform_took_and_never_acknowledged(house: House, ending: Ending) -> None:
    ended = await house.greeted()
    if isinstance(house.app, OfficialApi):
        house.model.respond = slow_echo
    house.app.hang()
    house.app.says("w1")
    await until(lambda: house.home.rows("SELECT 1 FROM outbox WHERE state = 'sending'"))
    await asyncio.sleep(0.2)
    await ending(ended)
    await house.start()
    await until(lambda: any("w1" in words for words in house.app.texts()), 20)
    await house.home.settled()
    found = house.app.texts()[1:]
    marked = f"re: w1\n{AGAIN}"
    assert found in ([[marked], ["re: w1", marked]] if house.app.tells else [["re: w1"]])


# -- a wait that the platform ordered ----------------------------------------------------------------------------------


async def _waits(house: House, ending: Ending, seconds: float) -> None:
    ended = await house.greeted()
    if isinstance(house.app, OfficialApi):
        house.model.respond = slow_echo
    pace = house.app.server.pace
    pace.seconds = seconds
    house.app.says("w1")
    await until(lambda: pace.refused, 20)
    ordered = time.monotonic()
    house.app.says("w2")
    await until(lambda: house.stored() == 3)
    await ending(ended)
    refused = len(pace.refused)
    await house.start()
    await house.says_once(["w1", "w2"], within_s=seconds + 30)
    assert len(pace.refused) - refused <= 1, "the order outlives the process: it is not asked again and again"
    if not house.app.replies:
        assert time.monotonic() - ordered >= seconds
        assert AGAIN not in "\n".join(house.app.texts()), "a refused message provably was not shown"


@pytest.mark.rule("RL-1", "RL-2", "CH-33", "CH-91", "CH-101")
@ENDINGS
@apps(lambda app: app.waits)
async def test_a_short_wait(house: House, ending: Ending) -> None:
    await _waits(house, ending, 4)


@pytest.mark.slow
@pytest.mark.rule("RL-1", "RL-2", "CH-33", "CH-91", "CH-101", "CH-186")
@ENDINGS
@apps(lambda app: app.waits)
async def test_a_wait_of_27_seconds(house: House, ending: Ending) -> None:
    await _waits(house, ending, 27)


# -- a connection that is dead -----------------------------------------------------------------------------------------


@pytest.mark.rule("RL-1", "RL-2", "CH-9", "CH-50", "CH-190", "CH-215")
@ENDINGS
@apps(lambda app: app.polls)
async def test_a_connection_that_stands_and_says_nothing(house: House, ending: Ending) -> None:
    """The poll hangs, or the socket is a zombie: what was written meanwhile comes with the next life; nothing that was on its way is lost."""
    house.model.will(text("re: hello"), text("A title"))
    ended = await house.greeted()
    house.model.forget_plan()
    house.app.deafen(True)
    await asyncio.sleep(0.3)  # a poll that was answered already is over
    for word in BURST[:3]:
        house.app.says(word)
    began = time.monotonic()
    await ending(ended)
    assert time.monotonic() - began < patience(5), "nobody waits for a dead connection"
    house.app.deafen(False)
    await house.start()
    await house.says_once(BURST[:3])
