from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.web_house import House, open_house


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[House]:
    """The web side, running."""
    async with open_house(sqlite, clock, tmp_path) as house:
        yield house
