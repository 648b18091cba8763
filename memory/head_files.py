"""The files that stand in the head of every prompt (WD-6), read again only when they changed: an unchanged workspace gives identical bytes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from memory import cowagent, scope_templates
from memory.errors import StoreUnavailable
from memory.file_errors import FileUnreadable, PathRefused
from memory.layout import CURATED, Role
from memory.scopes import ROOT, SYSTEM, Scope
from memory.whole_file import Stamp
from memory.workspace import Workspace

SETTLED_NS = 2_000_000_000  # a file changed this recently may change again without its stamp showing it, so it is read again
KEPT = 1_000  # files held in memory, those used last


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedText:
    """A file with content of its own. `text`: what the model gets (`scope_templates.for_prompt`); `hash`: SHA-256 of the file in hex."""

    path: str
    role: Role
    text: str
    hash: str


@dataclass(frozen=True, slots=True)
class _Known:
    stamp: tuple[str, Stamp]
    settled: bool
    digest: str
    text: NamedText | None


class HeadFiles:
    """Blocks, as the workspace does. Safe from several threads: the worst is a file read twice."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: OrderedDict[tuple[Scope, str], _Known] = OrderedDict()
        self._lock = threading.Lock()
        self.reads = 0  # files read so far

    def head(self, scope: Scope | None) -> tuple[NamedText, ...]:
        """`system.md`, the scope's `user.md` or `space.md`, `RULE.md` in the root of a CowAgent folder, `MEMORY.md`; those with content (WD-2, WD-6).

        None, a turn without memory, gets `system.md` alone. A file that cannot be read is left out and named by `Workspace.problems` (WD-23).
        """
        wanted = [(ROOT, SYSTEM)]
        if scope is not None:
            rules = [(ROOT, cowagent.RULES)] if scope == ROOT and self._has_rules() else []
            wanted += [(scope, scope.about), *rules, (scope, CURATED)]
        found = (self.text(of, path) for of, path in wanted)
        return tuple(text for text in found if text is not None)

    def _has_rules(self) -> bool:
        try:
            return self._workspace.is_cowagent()
        except StoreUnavailable:
            return False

    def text(self, scope: Scope, path: str) -> NamedText | None:
        """One file if it has content of its own; None too when it cannot be read."""
        with self._lock:
            known = self._known.pop((scope, path), None)
        try:
            known = self._fresh(scope, path, known)
        except (FileUnreadable, PathRefused, StoreUnavailable):
            return None
        if known is None:
            return None
        with self._lock:
            self._known[scope, path] = known
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known.text

    def _fresh(self, scope: Scope, path: str, known: _Known | None) -> _Known | None:
        now_ns = time.time_ns()
        stamp = self._workspace.stamp(scope, path)
        if stamp is None or (known and known.stamp == stamp and known.settled):
            return known if stamp else None
        self.reads += 1
        read = self._workspace.read(scope, path)
        if read is None:
            return None
        settled = now_ns - max(stamp[1].changed_ns, stamp[1].touched_ns) > SETTLED_NS
        if known and known.digest == read.hash:
            return _Known(stamp, settled, read.hash, known.text)
        text = None
        if scope_templates.has_own_content(path, read.content):
            text = NamedText(path=path, role=read.role, text=scope_templates.for_prompt(path, read.content), hash=read.hash)
        return _Known(stamp, settled, read.hash, text)
