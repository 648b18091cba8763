"""In which zone the days of a memory begin."""

from __future__ import annotations

import logging
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from gateway.zone_names import system_zone
from gateway.zones import zone_of
from memory.database import Database
from memory.file_schema import scope_settings
from memory.schema import people, spaces
from tests.conftest import FakeClock

pytestmark = pytest.mark.rule("WD-56")


async def test_a_scope_has_its_own_zone_then_its_persons_then_the_configured_one(database: Database, clock: FakeClock) -> None:
    async def zone(scope: str, default: str = "Europe/Berlin") -> str:
        return (await database.read(lambda c: zone_of(c, scope, default))).key

    assert await zone("root") == "Europe/Berlin"
    person = {"id": "p-aaaaaaaaaa", "name": "Ana", "scope": "root", "timezone": "Asia/Tokyo", "created_at": clock()}
    await database.write(lambda c: c.execute(sa.insert(people), person))
    assert await zone("root") == "Asia/Tokyo"
    assert await zone("people/p-bbbbbbbbbb") == "Europe/Berlin"
    await database.write(lambda c: c.execute(sa.insert(scope_settings), {"scope": "root", "timezone": "Africa/Cairo", "updated_at": clock()}))
    assert await zone("root") == "Africa/Cairo"
    space = {"id": "s-aaaaaaaaaa", "channel": "discord", "account": "", "platform_space_id": "1", "timezone": "America/Santiago"}
    await database.write(lambda c: c.execute(sa.insert(spaces), {**space, "created_at": clock()}))
    assert await zone("spaces/s-aaaaaaaaaa") == "America/Santiago"


async def test_a_name_that_is_no_zone_is_told_with_its_key_and_passed_over(
    sqlite: Database, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    person = {"id": "p-aaaaaaaaaa", "name": "Ana", "scope": "root", "timezone": "Mars/Olympus", "created_at": clock()}
    await sqlite.write(lambda c: c.execute(sa.insert(people), person))
    with caplog.at_level(logging.ERROR):
        assert (await sqlite.read(lambda c: zone_of(c, "root", "Asia/Tokyo"))).key == "Asia/Tokyo"
    assert "people.timezone of root is 'Mars/Olympus'" in caplog.text


def test_the_systems_zone_is_read_from_where_the_system_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    assert system_zone(tmp_path / "missing") == ZoneInfo("UTC")
    (tmp_path / "zoneinfo" / "Asia").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Asia" / "Tokyo").touch()
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Asia" / "Tokyo")
    assert system_zone(tmp_path / "localtime").key == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert system_zone(tmp_path / "localtime").key == "Europe/Berlin"
    monkeypatch.setenv("TZ", ":no/zone")
    assert system_zone(tmp_path / "localtime").key == "Asia/Tokyo"
