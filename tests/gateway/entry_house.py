"""A `RowsHouse` whose chats have entries, with the desk that looks after them and the jobs that make them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from gateway import live_window, windows
from gateway.entries import jobs as entries
from gateway.entries.desk import EntriesView, EntryDesk
from gateway.entries.jobs import EntryJobs
from gateway.leases import LeaseLost
from memory import conversations
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import RowsHouse, said, utc_now_at

NOON = utc_now_at("2026-03-09T12:00")


@asynccontextmanager
async def living(db: Database, folder: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    """A house at noon with its owner in it."""
    clock.now = NOON
    made = EntryHouse(db, folder, clock)
    await made.person()
    yield made
    await made.close()


class EntryHouse(RowsHouse):
    def __init__(
        self,
        db: Database,
        folder: Path,
        clock: FakeClock,
        script: Callable[[ModelRequest], Reply] = said,
        *,
        profile: str = "assistant",
        **config: Any,
    ) -> None:
        super().__init__(db, folder, clock, script, profile=profile, **config)

    def build(self) -> None:
        super().build()
        around: dict[str, Any] = {"db": self.db, "summarist": self.summarist, "config": lambda: self.config, "clock": self.clock}
        self.handlers |= EntryJobs(**around).handlers
        self.woken = 0
        self.desk = EntryDesk(**around, wake=self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def talk(self, chat: str, count: int, *, first: int = 1, answered: bool = True, **more: Any) -> None:
        """`count` messages, every other one an answer."""
        for n in range(first, first + count):
            if answered and n % 2 == 0:
                await self.answers(chat, f"word{n}", **more)
            else:
                await self.says(chat, f"word{n}", **more)

    async def turn_ends(self, chat: str) -> None:
        """As the last transaction of a turn."""
        await self.db.write(lambda c: entries.after_turn(c, self.config, chat, "root"))

    async def turn(self, chat: str, text: str) -> None:
        await self.says(chat, text)
        await self.answers(chat, f"re: {text}")
        await self.turn_ends(chat)

    async def make(self) -> list[str]:
        """Run the jobs of entries; what each was."""
        ran: list[str] = []
        going_on = True
        while going_on:
            with suppress(LeaseLost):  # stopped by a person meanwhile
                going_on = await self.run_one(entries.KIND, ran=ran)
        return [key.split(":")[1] for key in ran]

    async def listing(self, chat: str, person: str = OWNER) -> EntriesView:
        return await self.desk.listing(chat, person)

    async def configure(self, chat: str, **changes: Any) -> dict[str, Any]:
        return asdict(await self.desk.configure(chat, changes))

    async def write(self, chat: str, first: int, to: int, text: str = "") -> int:
        return (await self.desk.write(chat, OWNER, title="", text=text or f"recap {first} to {to}", first=first, to=to)).id

    async def numbers(self, chat: str) -> dict[str, int]:
        """What was said, by its words."""
        found = await self.db.read(lambda c: conversations.window(c, chat, 0))
        return {each.text: each.seq for each in found}

    async def prompt(self, chat: str) -> str:
        """Everything that a prompt says of a chat now."""
        return "\n".join([await self.stands(chat), *await self.live(chat)])

    async def words_sent(self, chat: str) -> list[int]:
        """The numbers N of the messages `wordN` that are sent word for word."""
        return [int(found[1]) for each in await self.live(chat) if (found := re.fullmatch(r"(?:\[[^\]]*\] )?word(\d+)", each))]

    async def standing_as(self, chat: str, **asked: Any) -> str:
        """The standing text for a reply that is described by `live_entries.Asked`."""
        found = await self.conversation(chat)
        how = live_window.Asked(**asked)

        def read(c: sa.Connection) -> str:
            return live_window.standing(c, found, windows.profile_of(self.config, found), self.config, self.clock(), asked=how).text

        return await self.db.read(read)
