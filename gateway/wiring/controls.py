"""What the one that runs the gateway does when a command or a page asks for it (`gateway/running.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.http.model_setup import Probe
from gateway.log_tail import LogTail


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """`reload`: reads the configuration again, and returns what changed and what is wrong with it; `release`: sends what an unclean start parked;
    `restart`: drains and begins again; `probe`: asks a model that is being set up; `secret`: known to the command line alone."""

    reload: Callable[[], Awaitable[tuple[list[str], list[str]]]]
    release: Callable[[], Awaitable[int]]
    restart: Callable[[], None]
    probe: Probe
    secret: str
    logs: LogTail
