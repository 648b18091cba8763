"""What the program writes down: one line per event, tied to its delivery, without secrets (RL-32, CH-43).

The delivery id rides a context variable, so every line written while a message is handled carries it. Message text is logged at DEBUG only.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from agent.llm.masking import mask

_delivery: ContextVar[str] = ContextVar("delivery", default="")

# Shapes of secrets that no configuration names, beside those of providers' keys: our tokens, a bot's token (also in an address, behind "/bot").
_SHAPES = re.compile(r"\byg_[\w-]{8,}|(?<!\d)\d{6,12}:[\w-]{10,}|\bxox[abp]-[\w-]{8,}")
_IN_ADDRESS = re.compile(r"([?&](?:access_token|token|secret|corpsecret|password|signature|ticket)=)[^&\s\"']+")
_QUIET = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "chromadb", "alembic", "aiohttp.access", "asyncio")  # they log addresses with tokens


@contextmanager
def delivery(delivery_id: str) -> Generator[None]:
    """Lines written inside carry this delivery id."""
    token = _delivery.set(delivery_id)
    try:
        yield
    finally:
        _delivery.reset(token)


class Redactor(logging.Filter):
    """Takes every known secret out of every line, whoever wrote it."""

    def __init__(self) -> None:
        super().__init__()
        self._known: re.Pattern[str] | None = None

    def know(self, secrets: set[str]) -> None:
        """The secrets of the present configuration."""
        self._known = re.compile("|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True))) if secrets else None

    def clean(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub("***", text)
        return _IN_ADDRESS.sub(r"\1***", _SHAPES.sub("***", mask(text)))

    def filter(self, record: logging.LogRecord) -> bool:
        record.delivery = _delivery.get()
        record.msg, record.args = self.clean(record.getMessage()), ()
        if record.exc_info or record.exc_text:  # another handler may have written the traceback down already
            record.exc_text = self.clean(record.exc_text or logging.Formatter().formatException(record.exc_info or (None, None, None)))
        return True


# What a stranger's words could do to a terminal, or to a reader who counts lines.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        delivery_id = getattr(record, "delivery", "")
        tied = f" [{delivery_id}]" if delivery_id else ""
        at = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%d %H:%M:%S}"
        line = f"{at} {record.levelname:<7} {record.name}{tied} {str(record.msg).translate(_CONTROLS)}"
        return f"{line}\n{record.exc_text}" if record.exc_text else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "delivery_id": getattr(record, "delivery", ""),
            "message": record.msg,
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


def start_logging(level: str, form: str) -> Redactor:
    """Send every logger to standard error in one form; returns the filter, to be told the secrets. Safe on any console (CF-02)."""
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # TextIOWrapper's own
    handler = logging.StreamHandler()
    redactor = Redactor()
    handler.addFilter(redactor)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # it quotes broken requests, cookies and login codes included
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    return redactor
