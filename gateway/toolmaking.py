"""The memory tools of one turn, built for the scope that was settled before the first model call: no tool takes a scope (WD-9, WD-102 to WD-105)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from agent.tools.file_write import FileEdit, FileWrite
from agent.tools.memory_get import MemoryGet, Page
from agent.tools.memory_search import Findings, Found, MemorySearch
from agent.tools.port import Tool
from agent.turn import Record, Used
from gateway.config import Config
from gateway.file_changes import FileChanges
from gateway.file_writer import FileWriter
from gateway.turn_files import TurnFacts, TurnFiles
from gateway.turn_store import TurnStart
from memory import provenance
from memory.database import Database
from memory.file_errors import PathRefused
from memory.file_search import SearchResult
from memory.layout import Place, Role, local_date_of, locate
from memory.lines import entries
from memory.scopes import PUBLIC, Access
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads


class Searches(Protocol):
    """What `memory_search` asks (`memory.file_search.FileSearch`): files that `access` may read, filtered before they are ranked (WD-10)."""

    async def search(self, access: Access, query: str, limit: int = 10, *, knowledge: bool = True) -> SearchResult: ...


class Toolmaking:
    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        writer: FileWriter,
        changes: FileChanges,
        search: Searches,
        config: Callable[[], Config],
    ) -> None:
        self._db = db
        self._files = files
        self._writer = writer
        self._changes = changes
        self._search = search
        self._config = config

    def facts(self, start: TurnStart, access: Access, record: Record, *, language: str, knowledge: bool | None = None) -> TurnFacts:
        """What the tools of this turn go by. `record` fills while the turn runs; `knowledge`: the scope's own setting, None for none."""
        config = self._config()
        asked = tuple(dict.fromkeys(question.author_person_id for question in start.questions if question.author_person_id))
        foreign = any(question.foreign_text for question in start.questions)
        return TurnFacts(
            access=access,
            turn_id=start.questions[0].turn_id,
            person_id=str(start.person.get("id", "")),
            sources=tuple(question.id for question in start.questions),
            speakers=asked,
            foreign=lambda: foreign or record.read_foreign,
            knowledge=config.knowledge if knowledge is None else config.knowledge and knowledge,
            language=language,
            prefix=config.command_prefixes[0],
            prompt_max_tokens=config.memory.prompt_max_tokens,
            note=record.used.append,
        )

    def tools_for(self, turn: TurnFacts) -> list[Tool]:
        """None where there is no memory (challenge chats, memory off); a stranger reads the open pages; who may write has a hand too."""
        access = turn.access
        if not any(area.under in ("", PUBLIC) for area in access.reads):
            return []
        read: list[Tool] = [
            MemorySearch(partial(self._find, turn), self._config().memory.search_results),
            MemoryGet(partial(self._page, turn)),
        ]
        if not access.writes:
            return read
        hand = TurnFiles(turn, files=self._files, writer=self._writer, changes=self._changes)
        return [*read, FileWrite(hand), FileEdit(hand)]

    async def _find(self, turn: TurnFacts, query: str, limit: int) -> Findings:
        result = await self._search.search(turn.access, query, limit, knowledge=turn.knowledge)
        hits = tuple(
            Found(path=hit.path, snippet=hit.snippet, first=hit.first_line, last=hit.last_line, date=hit.date, origin=str(hit.origin))
            for hit in result.hits
        )
        for hit in hits:
            turn.note(Used(how="search", path=hit.path, first=hit.first, last=hit.last, date=hit.date, origin=hit.origin))
        return Findings(hits=hits, mode=result.mode)

    async def _page(self, turn: TurnFacts, path: str) -> Page | None:
        found = _readable(turn, path)
        text = await self._files.read(lambda workspace: _text(workspace, found))
        if text is None:
            return None
        known = await self._db.read(partial(provenance.lines_of, scope=str(found.scope), path=found.path))
        origins = {entry.first: str(provenance.origin_of(entry, known)) for entry in entries(text)}
        day = local_date_of(found.path)
        turn.note(Used(how="get", path=found.path, date=day))
        return Page(path=found.path, text=text, date=day, origins=origins)


def _readable(turn: TurnFacts, path: str) -> Place:
    """PathRefused for what this turn may not read, and for diaries, which are for people (WD-78)."""
    found = locate(turn.access, path)
    if found.role is Role.DIARY:
        raise PathRefused("diaries are for people, not for prompts")
    if found.role in (Role.KNOWLEDGE, Role.PUBLIC) and not turn.knowledge:
        raise PathRefused("knowledge pages are switched off here")
    return found


def _text(workspace: Workspace, found: Place) -> str | None:
    read = workspace.read(found.scope, found.path)
    return None if read is None else read.content
