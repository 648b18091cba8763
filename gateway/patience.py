"""Writing what may not be lost: tried again for as long as the database cannot be written (RL-4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import chain, repeat
from typing import TypeVar

import sqlalchemy as sa

from memory.database import Database
from memory.errors import StoreUnavailable

T = TypeVar("T")

WAITS_S = (0.5, 1.0, 2.0, 5.0, 10.0)  # then again and again:
LONG_WAIT_S = 15.0

log = logging.getLogger(__name__)


async def write_at_last(db: Database, work: Callable[[sa.Connection], T], what: str) -> T:
    """Commit `work`, however long it takes; only the end of the program ends the waiting. `what` is being stored, for the operator."""
    waits = chain(WAITS_S, repeat(LONG_WAIT_S))
    while True:
        try:
            return await db.write(work)
        except StoreUnavailable as error:
            wait = next(waits)
            log.warning("%s cannot be stored now, again in %g s: %s", what, wait, error)
            await asyncio.sleep(wait)
