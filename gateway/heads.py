"""What stands in the head of a turn's prompt from files: the persona for everybody, and the memory of its scope (WD-6, WD-9, WD-10).

A file that cannot be read is left out; a disk that does not answer costs the files, never the reply (WD-23).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from gateway.turn_store import TurnStart
from memory import tokens
from memory.errors import StoreUnavailable
from memory.head_files import HeadFiles, NamedText
from memory.layout import Role
from memory.scopes import Access, Scope, parse_scope, scope_of, space_scope
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

CURATED_MAX_TOKENS = 4_000  # of MEMORY.md that stand in the prompt (WD-7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """`system`: the persona file; `notes`: the scope's files, each under its name; `scope`: whose they are, empty for none."""

    system: str = ""
    notes: tuple[str, ...] = ()
    scope: str = ""


class Heads:
    def __init__(self, threads: WorkspaceThreads, files: HeadFiles) -> None:
        self._threads = threads
        self._files = files

    async def of(self, start: TurnStart) -> Head:
        """The files for one turn, read again only when they changed."""
        access = access_of(start)
        try:
            found = await self._threads.read(lambda _workspace: self._files.head(access.scope))
        except StoreUnavailable as error:
            log.warning("the workspace cannot be read: %s", error)
            return Head()
        system = next((each.text for each in found if each.role is Role.SYSTEM), "")
        notes = tuple(_note(each) for each in found if each.role is not Role.SYSTEM)
        return Head(system=system, notes=notes, scope=str(access.scope) if access.scope else "")


def access_of(start: TurnStart) -> Access:
    """What the turn may touch, from where it is and who asks. Whatever cannot be resolved is a stranger's (WD-9)."""
    chat = start.conversation
    return scope_of(
        chat.kind,
        person=_scope(str(start.person.get("scope", ""))),
        space=space_scope(chat.space_id) if chat.space_id else None,
        memory_on=chat.memory_on,
        known=start.person.get("role", "guest") != "guest",
    )


def _scope(text: str) -> Scope | None:
    try:
        return parse_scope(text)
    except ValueError:
        return None


def _note(found: NamedText) -> str:
    """A file as a part of the prompt, marked with its name; a long `MEMORY.md` says how much of it is left out."""
    text = within(found.text, CURATED_MAX_TOKENS) if found.role is Role.CURATED else found.text
    return f"[file {found.path}]\n{text.strip()}\n[end of {found.path}]"


def within(text: str, most: int) -> str:
    """`text` up to `most` tokens in whole lines, the newest (last) ones kept, with a line that says how many are left out (WD-7)."""
    if tokens.count(text) <= most:
        return text
    lines = text.splitlines()
    kept: list[str] = []
    left = most
    for line in reversed(lines):
        left -= tokens.count(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([f"({len(lines) - len(kept)} older lines are not shown here)", *reversed(kept)])
