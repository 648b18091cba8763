"""Private chats on a fake Telegram at once, with a model that takes five seconds (RL-8), beside the same number of direct calls.

Load model: everybody writes once, as fast as the platform takes it. What is shown is looked at every few milliseconds, from outside the gateway. The
fake platform is part of this process: what it costs is none of the gateway's processor time, but it shares the machine.

The fake takes whatever comes. Telegram itself takes 30 messages a second of one account (CH-93), so the best that any program can do is shown beside
what was measured: of two hundred answers that are ready at the same moment the last may leave six seconds later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from channels.telegram.pace import ACCOUNT
from channels.telegram.settings import CAPABILITIES
from tests.bench.load import Measured, direct
from tests.bench.processes import Served, endpoint, gateway
from tests.peers.model.server import WORDS
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN

CROWDS = (1, 20, 50, 200)
FIRST_CHAT = 700_001
SLOW_S = 5.0
WORDS_SAID = 18
LOOK_S = 0.02
LIMIT_S = 120.0
REST_S = 2.0  # between two crowds


@dataclass(slots=True)
class Watched:
    """Seconds after somebody wrote: when the first words showed in each chat, and when the whole answer did."""

    whole: str
    wrote: dict[int, float] = field(default_factory=dict[int, float])
    first: Measured = field(default_factory=Measured)
    full: Measured = field(default_factory=Measured)
    _begun: set[int] = field(default_factory=set[int])
    _done: set[int] = field(default_factory=set[int])

    def look(self, server: FakeBotApi, now: float) -> bool:
        """Note what is new; whether everything is there."""
        newest = {chat: texts[-1] for chat, texts in shown(server).items() if chat in self.wrote and chat not in self._done}
        for chat, text in newest.items():
            if chat not in self._begun:
                self._begun.add(chat)
                self.first.seconds.append(now - self.wrote[chat])
            if text == self.whole:
                self._done.add(chat)
                self.full.seconds.append(now - self.wrote[chat])
        return len(self._done) == len(self.wrote)


def shown(server: FakeBotApi) -> dict[int, list[str]]:
    """What the bot has said in each chat, as it stands now. The server works in a thread of its own: a copy is looked at."""
    said: dict[int, list[str]] = {}
    for (chat, _), message in list(server.world.messages.items()):
        if message.get("from", {}).get("id") == server.world.me["id"]:
            said.setdefault(chat, []).append(str(message.get("text", "")))
    return said


async def status_s(server: FakeBotApi, chat: int) -> float:
    """How long a command takes while everybody waits for the model."""
    began = time.monotonic()
    server.says(chat, "/status")
    while chat not in shown(server):
        await asyncio.sleep(LOOK_S)
        assert time.monotonic() - began < LIMIT_S, "no answer to /status"
    return time.monotonic() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What so many chats met. `processor_ms`: of the gateway, for each chat; `calls`: messages and edits."""

    chats: int
    straight: Measured
    watched: Watched
    status: float
    processor_ms: float
    calls: int
    doubled: int


async def _crowd(server: FakeBotApi, served: Served, url: str, chats: range) -> Crowd:
    straight = await direct(url, conversations=len(chats), each=1)
    watched = Watched(" ".join(WORDS.split()[:WORDS_SAID]))
    used, called = served.processor_s(), _calls(server)
    began = time.monotonic()
    for chat in chats:
        server.says(chat, f"message of {chat}")
        watched.wrote[chat] = time.monotonic()
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(status_s(server, chats.stop))
        while not watched.look(server, time.monotonic()) and time.monotonic() - began < LIMIT_S:  # noqa: ASYNC110  # from outside
            await asyncio.sleep(LOOK_S)
    return Crowd(
        chats=len(chats),
        straight=straight,
        watched=watched,
        status=asked.result(),
        processor_ms=(served.processor_s() - used) / len(chats) * 1000,
        calls=_calls(server) - called,
        doubled=sum(len(texts) > 1 for chat, texts in shown(server).items() if chat in watched.wrote),
    )


def _calls(server: FakeBotApi) -> int:
    return sum(call.method.lower() in ("sendmessage", "editmessagetext") for call in list(server.world.calls))


def bound_by_platform(chats: int) -> Measured:
    """When the first words show at best, by what the platform takes of one account, if all answers are ready when the model's time is over and
    nothing but them is sent."""
    most, within = ACCOUNT
    return Measured([CAPABILITIES.hold_s + SLOW_S + number // most * within.total_seconds() for number in range(chats)])


async def telegram(folder: Path, console: Console) -> None:
    crowds: list[Crowd] = []
    with FakeBotApi(hold_s=1.0) as server:
        account = {"enabled": True, "token": TOKEN, "base_url": server.url, "allow": ["*"]}
        async with endpoint(delay_s=SLOW_S, words=WORDS_SAID) as url, gateway(folder, url, channels={"telegram": account}) as served:
            for number, chats in enumerate(CROWDS):
                await asyncio.sleep(REST_S)
                begin = FIRST_CHAT + number * 1000
                crowds.append(await _crowd(server, served, url, range(begin, begin + chats)))
    _report(console, crowds)


def _report(console: Console, crowds: Sequence[Crowd]) -> None:
    table = Table(title=f"Chats on the fake Telegram at once, a model that takes {SLOW_S:g} s: seconds from writing (p50 / p95 / slowest)")
    headings = ("chats", "direct, whole", "first words", "platform's best", "whole answer", "first words late", "/status", "processor ms/chat")
    for heading in headings:
        table.add_column(heading, justify="right")
    for crowd in crowds:
        first = crowd.watched.first
        late = max(first.seconds, default=float("nan")) - SLOW_S
        table.add_row(
            str(crowd.chats), *map(_three, (crowd.straight, first, bound_by_platform(crowd.chats), crowd.watched.full)),
            f"{late:.2f}", f"{crowd.status:.2f}", f"{crowd.processor_ms:.0f}",
        )  # fmt: skip
    console.print(table)
    for crowd in crowds:
        full, straight = crowd.watched.full.seconds, crowd.straight.seconds
        console.print(
            f"{crowd.chats}: lost {crowd.chats - len(full)}, doubled {crowd.doubled}; {crowd.calls} messages and edits; "
            f"slowest whole answer {max(full, default=float('nan')) / max(straight):.2f} × direct"
        )
    console.print(
        f"First words come at least {CAPABILITIES.hold_s:g} s after the model's own time: so long is waited whether more is written (CH-65). "
        "The platform's best: a second more for every 30 chats, by what Telegram takes of one account (CH-93)."
    )


def _three(measured: Measured) -> str:
    return " / ".join(f"{measured.percentile(share):.2f}" for share in (0.5, 0.95, 1.0))
