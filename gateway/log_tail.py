"""The last lines of the log, for `/logs`: kept in memory, already without secrets and without anybody's words (CH-43)."""

from __future__ import annotations

import logging
from collections import deque
from datetime import UTC, datetime

from channels.message import clean

KEPT = 50
LINE_MAX = 300  # characters


class LogTail(logging.Handler):
    """A log handler that only remembers. Give it the redactor as a filter before it is added to the root logger."""

    def __init__(self) -> None:
        super().__init__(level=logging.INFO)
        self._lines: deque[str] = deque(maxlen=KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        cause = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
        words = " ".join(clean(record.getMessage()).split())
        at = f"{datetime.fromtimestamp(record.created, UTC):%H:%M:%S}"
        self._lines.append(f"{at} {record.levelname} {record.name} {words}{cause}"[:LINE_MAX])

    def last(self, count: int) -> list[str]:
        """Up to `count` lines, oldest first; times are UTC."""
        return list(self._lines)[-count:]
