"""Days of a talk in every zone: through both changes of the clock, at every rollover hour, with zone and hour changed in mid-life (AT-7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway import live_window, windows
from memory.database import Database
from memory.recall import calendar_plan, summary_rows
from memory.recall.calendar_plan import Clock, Stamp
from memory.recall.kinds import CALENDAR, Kind
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse

HOUR, CHANGED = timedelta(hours=1), 50
AROUND = {
    "America/New_York": ("2026-03-08", "2026-11-01"), "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "Pacific/Kiritimati": ("2026-03-08",), "Pacific/Pago_Pago": ("2026-03-08",), "Asia/Kolkata": ("2026-03-08",), "Asia/Kathmandu": ("2026-03-08",),
}  # fmt: skip
CASES = [(zone, day) for zone, days in AROUND.items() for day in days]
pytestmark = [pytest.mark.rule("RS-158", "RS-159", "RS-62"), pytest.mark.case("AT-7", "K4", "K5")]


def owner(instant: datetime, zone: str, hour: int) -> date:
    """By the wall clock: before the rollover hour it is still yesterday."""
    there = instant.astimezone(ZoneInfo(zone))
    return there.date() - timedelta(days=there.hour < hour)


@pytest.mark.parametrize(("zone", "change"), CASES)
@pytest.mark.parametrize("hour", [pytest.param(hour, marks=pytest.mark.slow if hour % 4 else ()) for hour in range(12)])
def test_each_hour_belongs_to_one_day_and_is_covered_once_or_raw_at_every_later_hour(zone: str, change: str, hour: int) -> None:
    begin = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(days=2)
    talk = [Stamp(seq=n + 1, at=begin + n * HOUR + timedelta(minutes=30 * (n % 2))) for n in range(110)]
    clock = Clock(zone=ZoneInfo(zone), rollover_hour=hour)
    days = calendar_plan.uncovered_days(talk, clock)
    dates = {seq: day.day for day in days for seq in day.seqs}
    assert dates == {message.seq: owner(message.at, zone, hour) for message in talk}
    assert sum(len(day.seqs) for day in days) == len(talk)
    covered: Counter[int] = Counter()
    for now in (begin + n * HOUR + timedelta(minutes=45) for n in range(120)):
        said = [message for message in talk if message.at <= now]
        for day in calendar_plan.uncovered_days((message for message in said if message.seq not in covered), clock):
            if calendar_plan.is_over(day.day, clock, now, said[-1].at):
                covered.update(day.seqs)
        raw = calendar_plan.raw(said, covered, clock, now, tail=0)
        today = owner(now, zone, hour)
        assert sorted({*raw, *covered}) == [message.seq for message in said]
        assert {dates[seq] for seq in {*raw} & {*covered}} <= {today}, "what is covered and raw is today's alone"
    assert set(covered.values()) <= {1}


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    made = RowsHouse(sqlite, tmp_path, clock, profile="calendar", days={"tail": 0})
    await made.person()
    yield made
    await made.close()


@pytest.mark.slow
@pytest.mark.parametrize(("zone", "change"), CASES)
async def test_no_message_is_lost_or_doubled_through_the_change_and_through_another_zone_and_hour(house: RowsHouse, zone: str, change: str) -> None:
    begin = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(days=1, hours=12)
    house.clock.now = begin
    chats = {hour: await house.made(timezone=zone, settings={"days.rollover_hour": hour}) for hour in range(12)}
    said: dict[str, dict[int, datetime]] = {chat: {} for chat in chats.values()}
    for n in range(84):
        now = begin + n * HOUR
        for hour, chat in chats.items():
            if n == CHANGED:
                await house.change(chat, timezone="Asia/Tokyo" if hour % 2 else zone, settings={"days.rollover_hour": 11 - hour})
            if n % 3 == hour % 3:
                said[chat][(await house.says(chat, f"at {now:%d %H}", at=now)).seq] = now
        await house.at(f"{now + timedelta(minutes=30):%Y-%m-%dT%H:%M}")
        if n == CHANGED - 1:
            for hour, chat in chats.items():
                await its_own_days(house, chat, said[chat], zone, hour)
        if n % 4 == 3:
            for hour, chat in chats.items():
                covered = await house.stood_for(chat, *CALENDAR)
                assert len(covered) == len(set(covered)), f"covered twice: hour {hour}, step {n}"
                assert sorted({*covered, *await live(house, chat)}) == sorted(said[chat]), f"lost: hour {hour}, step {n}"


async def its_own_days(house: RowsHouse, chat: str, said: dict[int, datetime], zone: str, hour: int) -> None:
    """Each row holds messages of its own day or week and no others."""
    rows = await house.rows(chat, *CALENDAR)
    sources = await house.db.read(lambda c: summary_rows.sources_of(c, [row.id for row in rows]))
    assert rows
    for row in rows:
        first = date.fromisoformat(row.local_date)
        last = first + timedelta(days=6 if row.kind is Kind.WEEK else 0)
        assert all(first <= owner(said[seq], zone, hour) <= last for seq in sources[row.id])


async def live(house: RowsHouse, chat: str) -> list[int]:
    found = await house.conversation(chat)
    profile = windows.profile_of(house.config, found)
    return await house.db.read(lambda c: [each.seq for each in live_window.window(c, found, profile, house.config, house.clock()).log])
