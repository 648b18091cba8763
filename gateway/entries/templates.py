"""Instructions for entries, shared by the whole application (RS-88). Whoever may change them is for the callers to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.entries import settings as entry_settings
from gateway.entries.settings import BUILTIN, PROMPT_MAX, NoSuchTemplate, SettingRefused
from memory.database import Database
from memory.recall import entry_templates
from memory.recall.entry_templates import Kept

NAME_MAX = 100  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The built-in one has id 0, no name, and cannot be changed."""

    id: int
    name: str
    text: str
    builtin: bool


class TemplateDesk:
    def __init__(self, *, db: Database, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._clock = clock

    async def templates(self) -> list[Template]:
        """The built-in one first, then by name."""
        kept = await self._db.read(entry_templates.every)
        return [Template(id=BUILTIN, name="", text=entry_settings.builtin(), builtin=True), *map(_told, kept)]

    async def add_template(self, name: str, text: str) -> Template:
        """Raises SettingRefused: a name and a text are needed, of at most 100 and 8,000 characters."""
        checked = _checked(name, text)
        return _told(await self._db.write(lambda connection: entry_templates.add(connection, *checked, self._clock())))

    async def copy_template(self, template_id: int, name: str = "") -> Template:
        """`name`: of the copy; empty: that of the template, with a number. Raises NoSuchTemplate, SettingRefused."""

        def work(connection: sa.Connection) -> Kept:
            old = _kept(connection, template_id)
            return entry_templates.add(connection, *_checked(name or _next(connection, old.name), old.text), self._clock())

        return _told(await self._db.write(work))

    async def change_template(self, template_id: int, *, name: str | None = None, text: str | None = None) -> Template:
        """Chats that use it follow; those with words of their own do not. Raises NoSuchTemplate, SettingRefused."""

        def work(connection: sa.Connection) -> Kept:
            old = entry_templates.one(connection, template_id)
            if old is None:
                raise NoSuchTemplate(template_id)
            checked = _checked(old.name if name is None else name, old.text if text is None else text)
            entry_templates.change(connection, template_id, *checked, self._clock())
            return Kept(id=template_id, name=checked[0], text=checked[1])

        return _told(await self._db.write(work))

    async def delete_template(self, template_id: int) -> None:
        """Chats that used it take the built-in one, and its id stands in none of them. Raises NoSuchTemplate."""

        def work(connection: sa.Connection) -> bool:
            entry_settings.forget_template(connection, template_id)
            return entry_templates.delete(connection, template_id)

        if not await self._db.write(work):
            raise NoSuchTemplate(template_id)


def _kept(connection: sa.Connection, template_id: int) -> Kept:
    if template_id == BUILTIN:
        return Kept(id=BUILTIN, name="", text=entry_settings.builtin())
    found = entry_templates.one(connection, template_id)
    if found is None:
        raise NoSuchTemplate(template_id)
    return found


def _next(connection: sa.Connection, name: str) -> str:
    """The first free number behind a name."""
    taken = {each.name for each in entry_templates.every(connection)}
    return next(found for number in range(2, len(taken) + 3) if (found := f"{name} {number}".strip()[-NAME_MAX:]) not in taken)


def _checked(name: str, text: str) -> tuple[str, str]:
    """Raises SettingRefused."""
    told, words = " ".join(name.replace("\0", "").split()), text.replace("\0", "").strip()
    if not told or len(told) > NAME_MAX:
        raise SettingRefused(f"name: from 1 to {NAME_MAX} characters")
    if not words or len(words) > PROMPT_MAX:
        raise SettingRefused(f"text: from 1 to {PROMPT_MAX:,} characters")
    return told, words


def _told(kept: Kept) -> Template:
    return Template(id=kept.id, name=kept.name, text=kept.text, builtin=False)
