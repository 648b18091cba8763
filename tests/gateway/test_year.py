"""A year of days in three memories with three zones: each date is summarised and dreamt once, nothing is lost, nothing grows without end."""

from __future__ import annotations

import bisect
import itertools
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from memory import tokens
from memory.database import Database, sqlite_url
from memory.file_schema import file_lines, scope_settings
from memory.layout import CURATED
from memory.prompt_budget import share
from memory.schedule import local_date
from memory.schema import jobs, messages
from memory.scopes import parse_scope
from tests.conftest import FakeClock
from tests.gateway import dreams
from tests.gateway.dreams import Dreamer
from tests.gateway.nights import each_said

DAYS = 365
FIRST = date(2026, 1, 1)
KEPT = 40  # lines of MEMORY.md at which the scripted model begins to let the oldest go
ZONES = {"root": "America/Santiago", "people/p-aaaaaaaaaa": "Europe/Berlin", "spaces/s-bbbbbbbbbb": "Asia/Tokyo"}
WORDS = {
    "root": "The {n}th lighthouse of {day} is at Chiloé",
    "people/p-aaaaaaaaaa": "Am {day} lag Brief {n} im Kasten",
    "spaces/s-bbbbbbbbbb": "{day}に第{n}号の船を見た",
}


def tend(request: ModelRequest) -> Reply:
    """Summaries say what was said; a dream takes one line of each new day and lets the oldest go once there are many."""
    if request.purpose != "dream":
        return each_said(request)
    seen = dreams.shown(request)
    new = [dreams.entry(note["text"], evidence=[id_]) for id_, note in seen.notes.items() if note["text"].startswith("Said:")][:1]
    oldest = list(seen.old)[:1] if len(seen.old) >= KEPT else []
    return dreams.answer(*new, dropped=dict.fromkeys(oldest, "outdated"), keep=seen)


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """In memory where the system offers it: a year has 30,000 commits, and what a disk takes for each is another test's question."""
    ram = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=ram if os.access(ram, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
async def house(empty_sqlite: Path, memory_folder: Path, clock: FakeClock) -> AsyncGenerator[Dreamer]:
    clock.now = datetime.combine(FIRST, time(1), UTC)
    sqlite = Database(sqlite_url(shutil.copy(empty_sqlite, memory_folder / "year.db")))
    made = Dreamer(sqlite, memory_folder, clock, tend)
    await made.person()
    await made.person("p-aaaaaaaaaa", scope="people/p-aaaaaaaaaa", role="user")
    await made.space("s-bbbbbbbbbb", "Harbour")
    for scope, zone in ZONES.items():
        values = {"scope": scope, "timezone": zone, "updated_at": clock()}
        await sqlite.write(lambda c, values=values: c.execute(sa.insert(scope_settings), values))
    yield made
    await made.close()
    await sqlite.close()


@pytest.mark.slow
@pytest.mark.rule("WD-48", "WD-52", "WD-53", "WD-57", "WD-61", "WD-73", "WD-85", "WD-130")
async def test_a_year_of_days_has_one_summary_and_one_dream_each_and_a_flat_memory(house: Dreamer, clock: FakeClock) -> None:
    chats = {scope: await house.chat(title=scope, space_id="s-bbbbbbbbbb" if scope.startswith("spaces") else None) for scope in ZONES}
    sizes: dict[int, dict[str, int]] = {}
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        for scope, zone in ZONES.items():
            noon = datetime.combine(day, time(12, number % 60), ZoneInfo(zone)).astimezone(UTC)
            text = WORDS[scope].format(n=number + 1, day=day)
            await house.says(chats[scope], text, at=noon, scope=scope, by="p-aaaaaaaaaa" if scope != "root" else "p-owneraaaaa")
            await house.answers(chats[scope], f"Noted, {number + 1}.", at=noon, scope=scope)
        for hour in (16, 23, 28):  # after midnight in Tokyo, in Berlin, in Santiago
            clock.now = datetime.combine(day, time(), UTC) + timedelta(hours=hour)
            await house.look()
            await house.run(limit=20)
        if number + 1 in (1, 30, DAYS):
            sizes[number + 1] = {scope: _head_tokens(house, scope) for scope in ZONES}

    rows = await house.db.read(lambda c: c.execute(sa.select(jobs.c.kind, jobs.c.scope, jobs.c.local_date, jobs.c.state)).all())
    ran = Counter((row.kind, row.scope, row.local_date) for row in rows if row.kind in ("daily-summary", "dream"))
    dates = {(FIRST + timedelta(days=number)).isoformat() for number in range(DAYS)}
    assert set(ran.values()) == {1}
    assert {row.state for row in rows} == {"done"}
    for scope in ZONES:
        assert {key[2] for key in ran if key[:2] == ("daily-summary", scope)} == dates
        assert {key[2] for key in ran if key[:2] == ("dream", scope)} == dates

    covered = sorted((row.conversation_id, row.first_seq, row.last_seq, row.local_date) for row in await house.covered())
    fields = [messages.c[name] for name in ("seq", "conversation_id", "created_at", "scope")]
    talk = await house.db.read(lambda c: c.execute(sa.select(*fields).order_by(messages.c.conversation_id, messages.c.seq)).all())
    assert len(talk) == 2 * DAYS * len(ZONES)
    assert all(first[0] != second[0] or first[2] < second[1] for first, second in itertools.pairwise(covered))  # no message twice
    for each in talk:  # and none not at all, each under the date it had where it was said
        place = bisect.bisect_right(covered, (each.conversation_id, each.seq, sys.maxsize, "")) - 1
        assert covered[place][0] == each.conversation_id and covered[place][1] <= each.seq <= covered[place][2]
        assert covered[place][3] == local_date(each.created_at, ZoneInfo(ZONES[each.scope])).isoformat()
    unused = sa.select(file_lines.c.path).where(file_lines.c.local_date != "", file_lines.c.used_by == "")
    assert await house.db.read(lambda c: c.execute(unused).all()) == []
    assert all(house.bullets(day, scope) for scope in ZONES for day in sorted(dates))

    for scope in ZONES:
        assert len(house.memory_lines(parse_scope(scope))) <= KEPT + 1
        assert 0 < sizes[1][scope] < sizes[DAYS][scope] < house.config.memory.prompt_max_tokens
        assert sizes[DAYS][scope] < 1.5 * sizes[30][scope]

    calls = house.calls
    await house.look()
    assert await house.run() == []
    assert house.calls == calls  # a second look at the year costs nothing


def _head_tokens(house: Dreamer, scope: str) -> int:
    """What MEMORY.md takes of the prompt."""
    found = house.workspace.read(parse_scope(scope), CURATED)
    return tokens.count(share(found.content if found else "", {}, house.config.memory.prompt_max_tokens, tokens.count).text)
