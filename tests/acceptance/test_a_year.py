"""A year of daily talk in three languages: the prompt stays flat, and a second run of everything asks no model (AT-5, AT-14)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway import chats as web_chats
from gateway.recall.talk_indexing import TalkIndexing
from memory import conversations
from memory.database import Database, sqlite_url
from tests.acceptance.daily_talk import TONGUES, a_day, as_long_as_it_may
from tests.acceptance.test_killed_and_again import again
from tests.conftest import FakeClock
from tests.gateway.nights import MODEL, OWNER
from tests.gateway.rows_house import RowsHouse
from tests.harness import eventually, running

DAYS, PAIRS = 400, 30
FIRST = date(2026, 1, 1)
MEASURED = (1, 30, 180, 365)
LONG = 32  # sentences of an answer: about 800 tokens, as models answer; of days that have left the window only the summaries are sent, whose
SHORT = 1  # length does not come from this, so that their answers may be short
WIDE: dict[str, Any] = {
    "model": {**MODEL["model"], "context_window": 200_000},
    "background": {"daily_token_budget": 0},
    "chunk": {"gap_hours": 0},
    "recall": {"time_limit_s": 5},  # of a busy machine
}
KINDS = ("day-row", "fold")


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """In memory where the system offers it: what a disk takes for a commit is another test's question."""
    ram = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=ram if os.access(ram, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
async def house(empty_sqlite: Path, memory_folder: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = datetime.combine(FIRST, time(1), UTC)
    db = Database(sqlite_url(shutil.copy(empty_sqlite, memory_folder / "year.db")))
    made = RowsHouse(db, memory_folder, clock, as_long_as_it_may, profile="calendar", **WIDE)
    await made.person()
    yield made
    await made.close()
    await db.close()


async def prompts(house: RowsHouse, chats: dict[str, str], folder: Path) -> dict[str, dict[str, int]]:
    """The sections of the prompt of one more question in each chat, in tokens: what a whole gateway over a copy of the store really sends."""
    (folder / "workspace" / ".yumegate").mkdir(parents=True)
    copy = folder / "workspace" / ".yumegate" / "yumegate.db"
    with closing(sqlite3.connect(str(house.db.url.database))) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)

    def answer(request: ModelRequest) -> Reply:
        return "All right" if request.purpose == "reply" else as_long_as_it_may(request)

    found: dict[str, dict[str, int]] = {}
    async with running(folder, ScriptedModel(answer, context_window=200_000), config=WIDE, clock=house.clock) as gateway:
        for name, chat in chats.items():
            said = (await gateway.say(chat, TONGUES[name][0].asks_fact))["message_id"]

            async def receipt(chat: str = chat, said: str = said) -> Any:
                turn = next((each["turn_id"] for each in await gateway.messages(chat) if each["id"] == said), None)
                async with gateway.http.get(f"{gateway.url}/api/chats/{chat}/turns/{turn}/receipt") as answer:
                    return await answer.json() if answer.status == 200 else None

            told = await eventually(receipt, within_s=30)
            found[name] = {each["name"]: each["tokens"] for each in told["sections"]} | {"recall": told["recall"]["tokens"]}
    return found


@pytest.mark.slow
@pytest.mark.rule("RS-164", "RS-165", "RS-66", "RS-191", "RS-30")
@pytest.mark.case("AT-5", "AT-14", "K1", "K21")
async def test_the_prompt_of_day_365_is_that_of_day_30_and_a_second_run_asks_nothing(house: RowsHouse, memory_folder: Path) -> None:
    new: dict[str, Any] = {"now": house.clock(), "title": "A year", "character": "default", "kind": "web"}
    chats = {name: await house.db.write(lambda c: web_chats.create(c, OWNER, **new)) for name in TONGUES}
    for chat in chats.values():
        await house.change(chat, profile=house.profile)
    index = TalkIndexing(
        db=house.db, clock=house.clock, embedder=None, home=None, gap=lambda: timedelta(0), record=lambda: house.config.recall.record
    )  # fmt: skip
    sizes: dict[int, dict[str, dict[str, int]]] = {}
    for number in range(1, DAYS + 1):
        day = FIRST + timedelta(days=number - 1)
        length = LONG if {number, number + 1} & {*MEASURED} else SHORT
        for name, chat in chats.items():
            said = [*a_day(TONGUES[name], day, PAIRS, length=length)]
            if number == 1:
                said.insert(0, (said[0][0], "user", TONGUES[name][0].fact))
            await house.db.write(partial(tell, chat, said))
            await index.follow(chat)
        if number in MEASURED:
            house.clock.now = datetime.combine(day, time(16), UTC)
            sizes[number] = await prompts(house, chats, memory_folder / f"day{number}")
            sys.stdout.write(f"\nprompt tokens on day {number}: { {name: sum(each.values()) for name, each in sizes[number].items()} }")
            sys.stdout.write(f"\n  {sizes[number]}")
        await house.at(f"{day + timedelta(days=1)}T05:00")

    budget = house.config.context.memory_budget
    for name in chats:
        total = {day: sum(sizes[day][name].values()) for day in MEASURED}
        memory = {day: sizes[day][name]["instructions"] - sizes[1][name]["instructions"] + sizes[day][name]["recall"] for day in MEASURED}
        assert max(memory.values()) <= budget + house.config.context.memory_overrun, (name, memory)
        # rows fill their share of the budget (RS-66) only after some months: of days with few words that growth would be a larger part
        assert total[365] <= 1.1 * total[30], (name, total)
        assert total[365] - total[30] <= budget * house.config.context.standing_share_percent / 100, (name, total)
        assert total[365] <= 1.1 * total[180], (name, total)
        assert sizes[30][name]["recall"] and sizes[365][name]["recall"], "what was said on the first day is recalled a year later"

    calls, before = house.calls, [await house.stands(chat) for chat in chats.values()]
    assert await house.plan() == 0
    assert {each.split()[0] for each in await again(house, KINDS)} == {*KINDS}
    assert house.calls == calls
    assert [await house.stands(chat) for chat in chats.values()] == before


def tell(chat: str, talk: list[tuple[datetime, str, str]], connection: sa.Connection) -> None:
    """All messages of a day, in one transaction."""
    for at, role, text in talk:
        by: dict[str, Any] = {"author_person_id": OWNER, "author_name": "Ana"} if role == "user" else {"author_name": "Yume"}
        conversations.add_message(
            connection, now=at, conversation_id=chat, text=text, role=role, origin="person" if role == "user" else "assistant", scope="root", **by
        )
