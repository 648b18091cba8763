"""`/knowledge …`: the pages of a scope, and whether they are used there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from gateway.commands.asked import Around, Asked
from gateway.commands.scoped import of_scope
from memory.layout import KNOWLEDGE_FOLDER, KNOWLEDGE_INDEX, Role
from memory.scope_switches import knowledge_of, set_knowledge
from memory.scopes import Scope
from memory.texts import FileInfo
from memory.workspace import Workspace

PER_FOLDER = 12
FOLDERS_SHOWN = 20


@of_scope
async def overview(around: Around, asked: Asked, scope: Scope) -> str:
    """On or off, pages, size, and how many for each topic."""
    pages = await around.desks.files.read(partial(_pages, scope=scope))
    own = await around.db.read(partial(knowledge_of, scope=str(scope)))
    everywhere = around.house.config().knowledge
    state = asked.say("on" if everywhere and own is not False else "off")
    lines = [asked.say("knowledge", state=state, pages=len(pages), size=f"{sum(page.size for page in pages) / 1024:,.1f}")]
    if not everywhere:
        lines.append(asked.say("knowledge_off_everywhere"))
    topics = Counter(_topic(page) for page in pages)
    lines += [f"- {topic}: {count}" for topic, count in topics.most_common(FOLDERS_SHOWN)]
    return "\n".join(lines)


@of_scope
async def tree(around: Around, asked: Asked, scope: Scope) -> str:
    """Every folder with its first pages."""
    pages = await around.desks.files.read(partial(_pages, scope=scope))
    return "\n".join(_tree(asked, pages)) or asked.say("knowledge_none")


@of_scope
async def switch_on(around: Around, asked: Asked, scope: Scope) -> str:
    return await _switch(around, asked, scope, on=True)


@of_scope
async def switch_off(around: Around, asked: Asked, scope: Scope) -> str:
    return await _switch(around, asked, scope, on=False)


async def _switch(around: Around, asked: Asked, scope: Scope, *, on: bool) -> str:
    await around.db.write(partial(set_knowledge, scope=str(scope), on=on, now=asked.now))
    if on and not around.house.config().knowledge:
        return asked.say("knowledge_off_everywhere")
    return asked.say("knowledge_now_on" if on else "knowledge_now_off")


def _pages(workspace: Workspace, scope: Scope) -> list[FileInfo]:
    return [file for file in workspace.files(scope) if file.role in (Role.KNOWLEDGE, Role.PUBLIC) and file.path != KNOWLEDGE_INDEX]


def _topic(page: FileInfo) -> str:
    """The folder of a page below `knowledge/`."""
    return page.path.rpartition("/")[0].removeprefix(KNOWLEDGE_FOLDER).strip("/") or KNOWLEDGE_FOLDER


def _tree(asked: Asked, pages: Sequence[FileInfo]) -> list[str]:
    folders: dict[str, list[str]] = {}
    for page in pages:
        folders.setdefault(_topic(page), []).append(page.path.rpartition("/")[2])
    lines: list[str] = []
    for topic, names in sorted(folders.items()):
        lines.append(f"{topic}/")
        lines += [f"- {name}" for name in sorted(names)[:PER_FOLDER]]
        if len(names) > PER_FOLDER:
            lines.append(f"- {asked.say('and_more', count=len(names) - PER_FOLDER)}")
    return lines
