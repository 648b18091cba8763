"""Loops for whole files, fixtures and all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest


def pytest_asyncio_loop_factories(item: pytest.Function) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A file that names a kind of loop as `LOOP` runs on it, every other one on the usual kind."""
    return {"loop": getattr(item.module, "LOOP", asyncio.new_event_loop)}
