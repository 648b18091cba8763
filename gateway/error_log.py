"""Keeps grave log lines for the operators' page, each with the delivery it belongs to (WO-30): what is logged as an error is shown there, once."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from channels.message import clean
from gateway.reports import Reports

WAITING_MAX = 200  # lines kept while the database cannot be written; older ones are in the log alone
TEXT_MAX = 500


class ErrorLog(logging.Handler):
    """A log handler that only collects; `run` writes what it has."""

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self._waiting: deque[tuple[str, str, str]] = deque(maxlen=WAITING_MAX)
        self._arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        cause = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
        line = clean(f"{record.getMessage()}{cause}")[:TEXT_MAX]
        self._waiting.append((getattr(record, "delivery", ""), record.name, line))
        self._loop.call_soon_threadsafe(self._arrived.set)

    async def run(self, reports: Reports) -> None:
        """Until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                delivery_id, source, line = self._waiting.popleft()
                try:
                    await reports.note_error(delivery_id, source, line)
                except Exception:  # who keeps the log must not end the gateway, and logging here would come back here
                    break  # the line is in the log; the page can do without
