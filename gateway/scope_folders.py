"""The folder of a person or a space, made with card and templates when they are first answered (WD-3). The owner's stays as it is."""

from __future__ import annotations

import logging

from gateway.memory_status import title_of
from gateway.turn_store import TurnStart
from memory.database import Database
from memory.errors import StoreError
from memory.scope_card import ScopeCard
from memory.scopes import ROOT, Access, Scope
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)


class ScopeFolders:
    def __init__(self, files: WorkspaceThreads, db: Database) -> None:
        self._files = files
        self._db = db
        self._ready: set[Scope] = set()  # looked at by this process

    async def ready(self, start: TurnStart, access: Access, language: str) -> None:
        """A disk that does not answer costs the folder, never the reply (WD-23)."""
        scope, chat = access.scope, start.conversation
        if scope is None or scope == ROOT or not access.writes or scope in self._ready:
            return
        label = await self._db.read(lambda connection: title_of(connection, scope)) if chat.space_id else str(start.person.get("name", ""))
        zone = chat.timezone if chat.space_id else str(start.person.get("timezone", ""))
        card = ScopeCard(label=label, platform=chat.channel, timezone=zone)
        try:
            await self._files.write(scope, lambda workspace: workspace.prepare(scope, card, language=language))
        except StoreError as error:
            log.warning("the folder of %s cannot be made: %s", scope, error)
            return
        self._ready.add(scope)
