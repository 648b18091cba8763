"""The pages that stand in the head always, found among the knowledge files that a turn may read (WD-139, WD-8)."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock

from memory.errors import StoreUnavailable
from memory.file_errors import FileUnreadable, PathRefused
from memory.layout import KNOWLEDGE_INDEX, Role
from memory.lore import Page, always_page
from memory.scopes import ROOT, Access, Scope
from memory.texts import FileInfo
from memory.workspace import Workspace

KEPT = 2_000  # pages remembered, those used last

_State = tuple[int, datetime]


class LorePages:
    """Reads a page again only when its size or time changed. Blocks, as the workspace does; safe from several threads."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: OrderedDict[tuple[Scope, str], tuple[_State, Page | None]] = OrderedDict()
        self._lock = Lock()

    def always(self, access: Access) -> tuple[Page, ...]:
        """Those of the turn's own scope and those for everyone, as far as it may read them; a file that cannot be read is none (WD-23)."""
        found = ((scope, file) for scope in dict.fromkeys(area.scope for area in access.reads) for file in _pages(self._workspace, scope, access))
        return tuple(page for scope, file in found if (page := self._page(scope, file)) is not None)

    def _page(self, scope: Scope, file: FileInfo) -> Page | None:
        state = (file.size, file.changed_at)
        with self._lock:
            known = self._known.pop((scope, file.path), None)
        page = known[1] if known and known[0] == state else _read(self._workspace, scope, file.path)
        with self._lock:
            self._known[scope, file.path] = (state, page)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return page


def always_pages(workspace: Workspace, access: Access) -> tuple[Page, ...]:
    """The same, read now."""
    return LorePages(workspace).always(access)


def _pages(workspace: Workspace, scope: Scope, access: Access) -> list[FileInfo]:
    roles = {Role.PUBLIC} if scope == ROOT and access.scope != ROOT else {Role.KNOWLEDGE, Role.PUBLIC}
    return [file for file in workspace.files(scope) if file.role in roles and file.path != KNOWLEDGE_INDEX and access.may_read(scope, file.path)]


def _read(workspace: Workspace, scope: Scope, path: str) -> Page | None:
    try:
        text = workspace.read(scope, path)
    except (FileUnreadable, PathRefused, StoreUnavailable):
        return None
    return always_page(path, text.content) if text else None
