"""A `Night` with the jobs that summarise chats for their prompts, and turns as `turn_store` begins and ends them, without a model for replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from gateway import live_window, windows
from gateway.config import Config
from gateway.summaries.calendar_days import CalendarDays
from gateway.summaries.calendar_look import CalendarLook
from gateway.summaries.restating import Restating
from gateway.summaries.rolling import Rolling
from gateway.summaries.summarist import Summarist
from gateway.talk import message_sizes
from gateway.trimming import left
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State, Summary
from tests.conftest import FakeClock
from tests.gateway.nights import Night


def lines(request: ModelRequest) -> list[str]:
    """What the messages of a summary request say."""
    return re.findall(r"^\[[^\]]*\] [^:\n]*: (.*)$", request.messages[-1].text, re.MULTILINE)


def said(request: ModelRequest) -> str:
    """Of talk: all that was said, and a detail for each message. Of summaries: their texts, closer together, and their details, but for facts that
    the text tells: so it is shorter than they are (RS-111)."""
    text = request.messages[-1].text
    talk = lines(request)
    told = [line for line in text.splitlines() if line and not line.startswith(("[", "- "))]
    wide, close = (" / ", "; ") if any(" / " in line for line in told) else ("; ", ";")
    plain = " / ".join(talk) or close.join(line.replace(wide, close) for line in told)
    details = [{"text": each, "kind": "fact"} for each in talk] or [
        {"kind": kind, "state": state, "due": due or "", "text": words}
        for kind, state, due, words in re.findall(r"^- (\w+) \((\w+)(?:, due ([-\d]+))?\): (.*)$", text, re.MULTILINE)
        if kind != "fact" or words not in plain
    ]
    return json.dumps({"details": details, "text": plain}, ensure_ascii=False)


class RowsHouse(Night):
    """`profile`: of its chats."""

    script: Callable[[ModelRequest], Reply]

    def __init__(
        self,
        db: Database,
        folder: Path,
        clock: FakeClock,
        script: Callable[[ModelRequest], Reply] = said,
        *,
        profile: str = "companion",
        **config: Any,
    ) -> None:
        super().__init__(db, folder, clock, script, **config)
        self.profile = profile
        self.build()

    def build(self) -> None:
        """As a start builds it."""
        self.summarist = Summarist(models=self.models, background=self.background, config=lambda: self.config)
        around: dict[str, Any] = {"db": self.db, "summarist": self.summarist, "config": lambda: self.config, "clock": self.clock}
        self.rolling, self.days, self.restating = Rolling(**around), CalendarDays(**around), Restating(**around)
        self.handlers |= {**self.rolling.handlers, **self.days.handlers, **self.restating.handlers}
        self.look_at = CalendarLook(**around, on_enqueued=lambda: None)

    async def set(self, **config: Any) -> None:
        values = {**self.config.model_dump(), **config}
        self.config = Config.model_validate(values, strict=False)

    async def made(self, channel: str = "telegram", **values: Any) -> str:
        chat = await self.chat(channel)
        await self.change(chat, profile=self.profile, **values)
        return chat

    async def change(self, chat: str, **values: Any) -> None:
        await self.db.write(lambda c: conversations.change(c, chat, **values))

    async def conversation(self, chat: str) -> Conversation:
        found = await self.db.read(lambda c: conversations.conversation(c, chat))
        assert found is not None
        return found

    async def asks(self, chat: str, text: str, **more: Any) -> None:
        """A question, as the begin of a turn takes it: what is too much leaves, in one transaction."""
        message = await self.says(chat, text, **more)

        def begin(c: sa.Connection) -> None:
            found = conversations.conversation(c, chat)
            assert found is not None
            profile = windows.profile_of(self.config, found)
            log = live_window.window(c, found, profile, self.config, self.clock()).log
            edge = windows.edge_before(self.config, found, profile, message_sizes(log), oldest_question=message.seq)
            if edge is not None and edge > found.window_edge:
                left(c, found, "root", found.window_edge + 1, edge, self.clock(), into=windows.into(self.config, found))
                conversations.move_edge(c, chat, edge)

        await self.db.write(begin)

    async def live(self, chat: str) -> list[str]:
        """The messages that a prompt holds now, with their dates."""
        found = await self.conversation(chat)

        def read(c: sa.Connection) -> list[str]:
            window = live_window.window(c, found, windows.profile_of(self.config, found), self.config, self.clock())
            return [f"[{window.dates[each.seq]}] {each.text}" if each.seq in window.dates else each.text for each in window.log]

        return await self.db.read(read)

    async def stands(self, chat: str) -> str:
        """The standing text that a prompt holds now."""
        found = await self.conversation(chat)
        return await self.db.read(lambda c: live_window.standing(c, found, windows.profile_of(self.config, found), self.config, self.clock()).text)

    async def rows(self, chat: str, *kinds: Kind, states: tuple[State, ...] = (State.ACTIVE,)) -> list[Summary]:
        return await self.db.read(lambda c: summary_rows.of_chat(c, chat, kinds=kinds or tuple(Kind), states=states))

    async def stood_for(self, chat: str, *kinds: Kind) -> list[int]:
        """The number of each message, as often as rows that are sent stand for it."""
        rows = await self.rows(chat, *kinds)
        found = await self.db.read(lambda c: summary_rows.sources_of(c, [row.id for row in rows]))
        return sorted(seq for seqs in found.values() for seq in seqs)

    async def plan(self) -> int:
        return await self.look_at.look()

    async def at(self, instant: str) -> list[str]:
        """It is `instant`; what is due is planned and runs, until nothing is."""
        self.clock.now = utc_now_at(instant)
        ran: list[str] = []
        while await self.plan():
            step = await self.run("day-row", "fold", "restate-summaries")
            ran += step
            if not step:
                break
        return ran


def utc_now_at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
