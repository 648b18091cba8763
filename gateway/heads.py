"""What stands in the head of a turn's prompt from files: the persona for everybody, and the memory of its scope (WD-6, WD-9, WD-10).

A file that cannot be read is left out; a disk that does not answer costs the files, never the reply (WD-23).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gateway.chat_scope import access_in
from gateway.turn_store import TurnStart
from memory import lore, provenance, tokens
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.head_files import HeadFiles, NamedText
from memory.layout import CURATED, KNOWLEDGE_INDEX, Role
from memory.lore import Page
from memory.lore_pages import LorePages
from memory.prompt_budget import share
from memory.provenance import LineRow
from memory.scopes import STRANGER, Access
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

INDEX_MAX_TOKENS = 1_000  # of knowledge/index.md (section 1.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """`system`: the persona file; `notes`: knowledge, then the scope's files, each under its name; `paths`: of all of them."""

    system: str = ""
    notes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Heads:
    def __init__(self, *, db: Database, threads: WorkspaceThreads, files: HeadFiles, pages: LorePages, curated_max: Callable[[], int]) -> None:
        """`curated_max`: tokens of MEMORY.md that stand in the prompt."""
        self._db = db
        self._threads = threads
        self._files = files
        self._pages = pages
        self._curated_max = curated_max

    async def of(self, access: Access, *, knowledge: bool) -> Head:
        """The files for one turn, read again only when they changed. `knowledge`: whether pages are used in this scope."""
        try:
            found = await self._threads.read(lambda _workspace: self._files.head(access.scope))
            index = pages = None
            if knowledge and access.scope is not None:
                scope = access.scope
                index = await self._threads.read(lambda _workspace: self._files.text(scope, KNOWLEDGE_INDEX))
                pages = lore.standing(await self._threads.read(lambda _workspace: self._pages.always(access)))
            rows: Mapping[str, LineRow] = {}
            if any(each.role is Role.CURATED and tokens.count(each.text) > self._curated_max() for each in found):
                rows = await self._db.read(partial(provenance.lines_of, scope=str(access.scope), path=CURATED))
        except StoreUnavailable as error:
            log.warning("the workspace cannot be read: %s", error)
            return Head()
        system = next((each.text for each in found if each.role is Role.SYSTEM), "")
        notes = [_index(index)] if index else []
        notes += [_page(page) for page in pages.pages] if pages else []
        notes += [self._note(each, rows) for each in found if each.role is not Role.SYSTEM]
        paths = [found.path for found in (index, *(pages.pages if pages else ()), *found) if found]
        return Head(system=system, notes=tuple(notes), paths=tuple(paths))

    def _note(self, found: NamedText, rows: Mapping[str, LineRow]) -> str:
        """A file as a part of the prompt, marked with its name; a long `MEMORY.md` says how much of it is left out (WD-7)."""
        if found.role is not Role.CURATED:
            return _named(found.path, found.text)
        part = share(found.text, rows, self._curated_max(), tokens.count)
        left = f"\n({part.left_out} more lines are not shown here; memory_search finds them)" if part.left_out else ""
        return _named(found.path, part.text.strip() + left)


def access_of(start: TurnStart) -> Access:
    """What the turn may touch: looked at again from where it is and who asks, and never another scope than the one that was settled when its question
    arrived. Whatever cannot be resolved is a stranger's (WD-9)."""
    chat = start.conversation
    access = access_in(chat, str(start.person.get("scope", "")), known=bool(start.scope))
    return access if access.scope is None or str(access.scope) == start.scope else STRANGER


def _named(path: str, text: str) -> str:
    return f"[file {path}]\n{text.strip()}\n[end of {path}]"


def _index(found: NamedText) -> str:
    part = share(found.text, {}, INDEX_MAX_TOKENS, tokens.count)
    left = f"\n({part.left_out} more lines are not shown here; memory_get reads them)" if part.left_out else ""
    return _named(found.path, part.text.strip() + left)


def _page(page: Page) -> str:
    return _named(page.path, page.text)
