"""A command of the command line while no gateway runs: under the lock of the data directory, on the store alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from gateway.admin import Admin, AdminFault
from gateway.config import Config
from gateway.credentials import VisitCache
from gateway.importing import COMMAND, Importing
from gateway.linking import Linking
from gateway.login_links import LoginLinks
from gateway.pairing import Pairing
from gateway.pairing_admin import PairingAdmin
from gateway.passwords import Passwords
from gateway.people import People
from gateway.store import open_database, utc_now
from gateway.tokens import ApiTokens
from memory.instance_lock import InstanceLock
from memory.migrate import migrate
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads


async def carry_out(config: Config, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`{"ok": result}` or `{"fault": sentence}`. Raises StoreError when the store cannot be opened."""
    for folder in (config.agent_workspace, config.data_dir):  # each by itself: a missing parent would get the usual, wider rights (WD-1)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        stack.enter_context(InstanceLock(config.data_dir))
        db = open_database(config)
        stack.push_async_callback(db.close)
        await asyncio.to_thread(migrate, db, config.data_dir / "backups")
        files = WorkspaceThreads(Workspace(config.agent_workspace, config.data_dir, utc_now))
        stack.push_async_callback(files.close)
        importing = Importing(db=db, files=files, clock=utc_now, workspace=config.agent_workspace, timezone=lambda: config.timezone)
        people = People(db, utc_now, stack.enter_context(Passwords()))
        linking = Linking(db=db, files=files, people=people, clock=utc_now)
        pairing = Pairing(db=db, clock=utc_now, people=people, linking=linking)
        web = config.channels.web
        admin = Admin(
            db=db,
            clock=utc_now,
            people=people,
            links=LoginLinks(db, utc_now),
            tokens=ApiTokens(db, utc_now, VisitCache(utc_now)),
            more={COMMAND: importing.run, **PairingAdmin(pairing).commands},
            page=lambda: web.public_url.rstrip("/") or f"http://{web.host}:{web.port}",
            config=lambda: config,
        )
        try:
            return {"ok": await admin.run(command, arguments)}
        except AdminFault as fault:
            return {"fault": str(fault)}
