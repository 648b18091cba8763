"""A CowAgent folder used in place, and one that could be: what the owner is told once, and whose its lines are (WD-24, WD-27, WD-28).

Lines of its `MEMORY.md` that are there when the folder is first used count as a program's; of its days, every line that we did not write counts as
imported and used already. Our own writers store the rows of their lines before the lines, so none of ours is taken for theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from gateway.language import say
from memory import cowagent, told
from memory.cowagent_import import imported_rows
from memory.database import Database
from memory.file_errors import FileUnreadable, PathRefused
from memory.layout import CURATED, Role
from memory.lines import entries
from memory.provenance import lines_of, put_lines
from memory.schema import settings
from memory.scopes import ROOT
from memory.texts import Text
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

IN_PLACE, OFFER = "cowagent_in_place", "cowagent_offer"  # codes of `memory.told`
KEY = "cowagent_adopted"

log = logging.getLogger(__name__)

_ADOPTED = sa.select(settings.c.value).where(settings.c.key == KEY)


def offer(config_sets_path: bool, home: Path) -> bool:
    """Whether the owner is asked what to do with a CowAgent folder (WD-27): nobody chose a workspace, ours was never made, and theirs is there.

    Ask before the first start makes the folder. `config_sets_path`: `agent_workspace` stands in the configuration.
    """
    return not config_sets_path and not (home / "yumegate").exists() and (home / cowagent.USUAL_FOLDER).is_dir()


def notices(connection: sa.Connection, language: str, *, workspace: Path, home: Path, now: datetime) -> list[str]:
    """What the owner is told now, in a private chat of theirs, and then never again: call it in the transaction that stores the words."""
    sentences: Mapping[str, Callable[[], str]] = {
        IN_PLACE: lambda: say(language, "cowagent_in_place", folder=workspace),
        OFFER: lambda: say(language, "cowagent_offer", folder=home / cowagent.USUAL_FOLDER),
    }
    return [sentences[code]() for code in told.take(connection, str(ROOT), now) if code in sentences]


class Adoption:
    """Call `begin` at the start, and `book` before lines of the root scope are judged, as a dream does."""

    def __init__(self, *, db: Database, files: WorkspaceThreads, clock: Callable[[], datetime], workspace: Path, home: Path) -> None:
        self._db = db
        self._files = files
        self._clock = clock
        self._workspace = workspace
        self._home = home
        self._booked: dict[str, str] = {}  # path -> hash of the text whose lines are booked

    async def begin(self, *, offered: bool) -> None:
        """Note what the owner must hear and say it in the log; book the lines of a folder used in place. `offered`: what `offer` said."""
        if offered:
            log.warning("%s", say("en", "cowagent_offer", folder=self._home / cowagent.USUAL_FOLDER))
            await self._db.write(lambda connection: told.tell_once(connection, str(ROOT), OFFER, self._clock()))
        if await self.book():
            log.warning("the CowAgent folder %s is used in place: its AGENT.md serves everyone; do not run both programs on it", self._workspace)
            await self._db.write(lambda connection: told.tell_once(connection, str(ROOT), IN_PLACE, self._clock()))

    def notices(self, connection: sa.Connection, language: str, now: datetime) -> list[str]:
        return notices(connection, language, workspace=self._workspace, home=self._home, now=now)

    async def book(self) -> bool:
        """Give every line that is CowAgent's its row. False, and nothing done, when the workspace is no such folder. Raises StoreUnavailable."""
        texts = await self._files.read(partial(_texts, booked=dict(self._booked)))
        if texts is None:
            return False
        if texts:
            await self._db.write(partial(_book, texts=texts, now=self._clock()))
            self._booked |= {text.path: text.hash for text in texts}
        return True


def _texts(workspace: Workspace, *, booked: Mapping[str, str]) -> list[Text] | None:
    """MEMORY.md and the days that are not booked as they are now; None when the root is no CowAgent folder."""
    if not workspace.is_cowagent():
        return None
    found: list[Text] = []
    for info in workspace.files(ROOT):
        if info.role not in (Role.CURATED, Role.DAILY):
            continue
        try:
            text = workspace.read(ROOT, info.path)
        except (FileUnreadable, PathRefused):  # named by `Workspace.problems`
            continue
        if text is not None and booked.get(text.path) != text.hash:
            found.append(text)
    return found


def _book(connection: sa.Connection, *, texts: list[Text], now: datetime) -> None:
    adopted = connection.execute(_ADOPTED).scalar() is not None
    for text in texts:
        if text.path == CURATED and adopted:
            continue  # what was added since is ours, with its row, or a person's
        known = lines_of(connection, str(ROOT), text.path)
        new = {entry.hash for entry in entries(text.content)} - known.keys()
        put_lines(connection, str(ROOT), text.path, (row for row in imported_rows(text.path, text.content) if row.hash in new), now)
    if not adopted:
        connection.execute(sa.insert(settings), {"key": KEY, "value": {"at": now.isoformat()}, "updated_at": now})
