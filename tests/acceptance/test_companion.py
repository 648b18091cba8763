"""Five thousand messages with a companion: the window keeps its limits, every message is covered once, four become one (AT-6)."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from gateway import live_window, windows
from memory import tokens
from memory.database import Database
from memory.recall.kinds import ROLLING, Kind
from memory.recall.summary_rows import State
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse

MESSAGES = 5_000
WORDS = ("The tide was low again. ", "潮がまた引いていた。", "潮水又退了。")


def short(_request: ModelRequest) -> str:
    return json.dumps({"text": "They talked of the tide."})


@pytest.mark.slow
@pytest.mark.rule("RS-5", "RS-6", "RS-44", "RS-45", "RS-49", "RS-50")
@pytest.mark.case("AT-6", "K21")
async def test_five_thousand_messages_keep_the_limits_and_are_covered_once(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    house = RowsHouse(sqlite, tmp_path, clock, short, profile="companion", background={"daily_token_budget": 0})
    await house.person()
    chat = await house.made()
    chooser, said = random.Random(6), list[int]()
    for n in range(MESSAGES // 2):
        clock.advance(minutes=7)
        length = chooser.choices((1, 20, 300), (90, 9, 1))[0]  # now and then one that is most of the window
        await house.asks(chat, f"{n}: " + WORDS[n % 3] * length)
        log = await window(house, chat)
        assert len(log) <= 50, n
        assert sum(size for _, size in log) <= 10_000 or len(log) == 1, n
        said.append(log[-1][0])
        said.append((await house.answers(chat, f"{n}: " + WORDS[n % 3] * chooser.choice((1, 8)))).seq)
        await house.run("rolling")
        if n % 50 == 49:
            await exact(house, chat, said)
    await exact(house, chat, said)
    every = await house.rows(chat, *ROLLING, states=tuple(State))
    recents = sum(row.kind is Kind.RECENT for row in every)
    active = Counter(row.kind for row in every if row.state is State.ACTIVE)
    assert recents > 400
    assert [active[Kind.RECENT], active[Kind.CONSOLIDATED], active[Kind.LONG_TERM]] == [recents % 4, recents // 4 % 4, recents // 16]
    calls = house.calls
    await house.run("rolling")
    assert house.calls == calls
    await house.close()


async def window(house: RowsHouse, chat: str) -> list[tuple[int, int]]:
    """Number and tokens of each message that is sent."""
    found = await house.conversation(chat)
    profile = windows.profile_of(house.config, found)
    log = await house.db.read(lambda c: live_window.window(c, found, profile, house.config, house.clock()).log)
    return [(message.seq, tokens.count(message.text)) for message in log]


async def exact(house: RowsHouse, chat: str, said: list[int]) -> None:
    """Each message is live, or in one summary that stands."""
    live, covered = [seq for seq, _ in await window(house, chat)], await house.stood_for(chat, *ROLLING)
    assert sorted([*live, *covered]) == said
