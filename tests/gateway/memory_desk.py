"""What tests of memory tools and first-start questions share: real files, a real database, and turns as the gateway begins them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.errors import AgentError
from agent.llm.scripted import ScriptedModel
from agent.runtime import Runtime
from agent.tools.port import Tool, ToolFailed
from agent.turn import Budget, Record, Said
from gateway.config import Config
from gateway.file_changes import FileChanges
from gateway.file_writer import FileWriter
from gateway.heads import access_of
from gateway.onboarding import Onboarding, OnboardingTurn
from gateway.profile import Profile
from gateway.toolmaking import Toolmaking
from gateway.turn_files import TurnFacts
from gateway.turn_store import TurnStart
from memory import conversations, provenance
from memory.conversations import Message
from memory.database import Database
from memory.file_search import Hit, SearchResult
from memory.ids import new_conversation, new_turn
from memory.layout import ROLES, Role
from memory.provenance import LineRow, Origin
from memory.schema import people, spaces
from memory.scopes import ROOT, Access, Scope, parse_scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.agent.turns import Page, turn
from tests.conftest import FakeClock


class WordSearch:
    """A small search of the files an access may read: lines that hold a word of the query."""

    def __init__(self, files: WorkspaceThreads) -> None:
        self._files = files
        self.mode: Any = "words"

    async def search(self, access: Access, query: str, limit: int = 10, *, knowledge: bool = True) -> SearchResult:
        def look(workspace: Workspace) -> list[Hit]:
            hits: list[Hit] = []
            for scope in {area.scope for area in access.reads}:
                for file in workspace.files(scope):
                    if not ROLES[file.role].searchable or not access.may_read(scope, file.path) or (file.role is Role.KNOWLEDGE and not knowledge):
                        continue
                    text = workspace.read(scope, file.path)
                    for number, line in enumerate((text.content if text else "").splitlines(), start=1):
                        if any(word in line for word in query.split()):
                            hits.append(
                                Hit(
                                    scope=scope, path=file.path, first_line=number, last_line=number, date="", origin=Origin.HUMAN, heading="",
                                    snippet=line, score=1.0, accepted=True, fits=True,
                                )
                            )
            return hits

        return SearchResult(hits=tuple((await self._files.read(look))[:limit]), mode=self.mode)


@dataclass
class Desk:
    """The parts under test, and what a test does with them."""

    db: Database
    clock: FakeClock
    workspace: Workspace
    files: WorkspaceThreads
    writer: FileWriter
    changes: FileChanges
    toolmaking: Toolmaking
    onboarding: Onboarding
    search: WordSearch
    settings: dict[str, Any]
    folder: Path
    written: list[tuple[Scope, str]] = field(default_factory=list[tuple[Scope, str]])

    def text(self, path: str, scope: Scope = ROOT) -> str:
        found = self.workspace.read(scope, path)
        return found.content if found else ""

    def put(self, path: str, text: str, scope: Scope = ROOT) -> None:
        """As a person does it in an editor."""
        old = self.workspace.read(scope, path)
        self.workspace.replace(scope, path, text, based_on=old.hash if old else None)

    async def person(self, person_id: str = "p-aaaaaaaaaa", *, scope: str = "root", **columns: str) -> None:
        values = {"id": person_id, "scope": scope, "role": "owner" if scope == "root" else "user", "created_at": self.clock(), **columns}
        await self.db.write(lambda connection: connection.execute(sa.insert(people), values))

    async def space(self, space_id: str) -> None:
        values = {"id": space_id, "channel": "loopback", "account": "main", "platform_space_id": space_id, "created_at": self.clock()}
        await self.db.write(lambda connection: connection.execute(sa.insert(spaces), values))

    async def row(self, person_id: str = "p-aaaaaaaaaa") -> Mapping[str, Any]:
        return await self.db.read(lambda connection: dict(connection.execute(sa.select(people).where(people.c.id == person_id)).mappings().one()))

    async def lines(self, path: str, scope: Scope = ROOT) -> dict[str, LineRow]:
        return await self.db.read(lambda connection: provenance.lines_of(connection, str(scope), path))

    async def start(
        self,
        text: str,
        *,
        person_id: str = "p-aaaaaaaaaa",
        kind: str = "dm",
        space_id: str | None = None,
        memory_on: bool = True,
        foreign: bool = False,
        after: TurnStart | None = None,
        answer: str = "",
    ) -> TurnStart:
        """A turn as it begins; `after` goes on in the same conversation, where `answer` was said to it."""
        now = self.clock()
        person = await self.row(person_id)
        scope = f"spaces/{space_id}" if space_id else str(person["scope"])
        known = "" if kind == "challenge" or not memory_on else scope

        def work(connection: sa.Connection) -> tuple[conversations.Conversation, Message]:
            chat_id = after.conversation.id if after else new_conversation()
            if after is None:
                conversations.create_conversation(
                    connection, now=now, key=f"web:main:{chat_id}", channel="web", account="main", kind=kind, conversation_id=chat_id,
                    person_id=person_id, space_id=space_id,
                )  # fmt: skip
            conversations.change(connection, chat_id, memory_on=memory_on)
            said = conversations.add_message(
                connection, now=now, conversation_id=chat_id, role="user", text=text, turn_id=new_turn(), author_person_id=person_id, scope=known,
                foreign_text=foreign,
            )  # fmt: skip
            chat = conversations.conversation(connection, chat_id)
            assert chat is not None
            return chat, said

        chat, said = await self.db.write(work)
        history: tuple[Message, ...] = ()
        if after is not None:
            last = replace(after.questions[-1], role="assistant", origin="assistant", text=answer)
            history = (*after.history, *after.questions, last)
        keys = ("id", "name", "role", "scope", "language", "timezone")
        return TurnStart(
            conversation=chat, person={key: person[key] for key in keys}, questions=(said,), history=history, attempt=1, scope=known
        )  # fmt: skip

    def facts(self, start: TurnStart, record: Record | None = None, *, language: str = "en", knowledge: bool | None = None) -> TurnFacts:
        return self.toolmaking.facts(start, access_of(start), record or Record(), language=language, knowledge=knowledge)

    async def tools(self, text: str = "remember", **more: Any) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.toolmaking.tools_for(self.facts(await self.start(text, **more)))}

    async def questions(self, start: TurnStart, *, language: str = "en", tools: bool = True) -> OnboardingTurn:
        return await self.onboarding.for_turn(start, self.facts(start, language=language), model_supports_tools=tools)

    async def run(self, start: TurnStart, model: ScriptedModel, *, language: str = "en") -> str:
        """A whole turn: questions, tools, model, end. The stored answer; empty when the model failed."""
        record = Record()
        facts = self.facts(start, record, language=language)
        asked = await self.onboarding.for_turn(start, facts, model_supports_tools=model.supports_tools)
        tools = [*self.toolmaking.tools_for(facts), *([asked.tool] if asked.tool else [])]
        said = Said(text=start.questions[-1].text, by_us=False)
        runtime = Runtime([model], budget=Budget(), max_prompt=20_000)
        try:
            newest = turn(said.text, tail_notes=(asked.note,) if asked.note else ())
            text = await runtime.run(newest, sink=Page(), record=record, steering=tuple, tools=tools)
        except AgentError:
            text = ""
        now = self.clock()
        await self.db.write(lambda connection: self.onboarding.after(connection, asked, answered=bool(text), now=now))
        return "\n\n".join(filter(None, (text, asked.append))) if text else ""


async def use(tool: Tool, **arguments: Any) -> str:
    """The tool's answer, or "error: …" as the model gets it."""
    try:
        return await tool.call(tool.arguments.model_validate(arguments))
    except ToolFailed as error:
        return f"error: {error}"


@asynccontextmanager
async def desk(db: Database, clock: FakeClock, folder: Path, **config: Any) -> AsyncGenerator[Desk]:
    workspace = Workspace(folder / "workspace", folder / "workspace" / ".yumegate", clock)
    files = WorkspaceThreads(workspace)
    written: list[tuple[Scope, str]] = []
    writer = FileWriter(db=db, files=files, clock=clock, on_written=lambda scope, path: written.append((scope, path)))
    changes = FileChanges(db=db, files=files, writer=writer, clock=clock)
    search = WordSearch(files)
    settings: dict[str, Any] = {"timezone": "UTC", **config}

    def present() -> Config:
        return Config.model_validate(settings)

    async def change_person(person_id: str, columns: Mapping[str, str]) -> None:
        await db.write(lambda connection: connection.execute(sa.update(people).where(people.c.id == person_id).values(**columns)))

    profile = Profile(db=db, files=files, writer=writer, changes=changes, change_person=change_person, clock=clock)
    toolmaking = Toolmaking(db=db, files=files, writer=writer, changes=changes, search=search, config=present)
    onboarding = Onboarding(db=db, profile=profile, config=present, clock=clock)
    try:
        yield Desk(db, clock, workspace, files, writer, changes, toolmaking, onboarding, search, settings, folder / "workspace", written)
    finally:
        await files.close()


def scope(text: str) -> Scope:
    return parse_scope(text)


def at(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T09:00:00+00:00")
