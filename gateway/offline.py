"""A command of the command line while no gateway runs: under the lock of the data directory, on the store alone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from gateway.admin import Admin, AdminFault
from gateway.config import Config
from gateway.credentials import VisitCache
from gateway.login_links import LoginLinks
from gateway.passwords import Passwords
from gateway.people import People
from gateway.store import open_database, utc_now
from gateway.tokens import ApiTokens
from memory.instance_lock import InstanceLock
from memory.migrate import migrate


async def carry_out(config: Config, command: str, arguments: dict[str, str]) -> dict[str, Any]:
    """`{"ok": result}` or `{"fault": sentence}`. Raises StoreError when the store cannot be opened."""
    for folder in (config.agent_workspace, config.data_dir):  # each by itself: a missing parent would get the usual, wider rights (WD-1)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        stack.enter_context(InstanceLock(config.data_dir))
        db = open_database(config)
        stack.push_async_callback(db.close)
        await asyncio.to_thread(migrate, db, config.data_dir / "backups")
        web = config.channels.web
        admin = Admin(
            db=db,
            clock=utc_now,
            people=People(db, utc_now, stack.enter_context(Passwords())),
            links=LoginLinks(db, utc_now),
            tokens=ApiTokens(db, utc_now, VisitCache(utc_now)),
            page=lambda: web.public_url.rstrip("/") or f"http://{web.host}:{web.port}",
        )
        try:
            return {"ok": await admin.run(command, arguments)}
        except AdminFault as fault:
            return {"fault": str(fault)}
