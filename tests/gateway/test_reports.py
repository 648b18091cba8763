"""What operators read from the tables, on both databases."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from gateway.reports import Delivery, DeliveryPart, DeliveryTurn, RecentError, Reports
from memory.database import Database
from memory.schema import conversations, errors, inbox, jobs, model_calls, outbox, people, spaces, turns
from tests.conftest import FakeClock


async def add(database: Database, table: sa.Table, *rows: dict[str, Any]) -> None:
    def work(connection: sa.Connection) -> None:
        for row in rows:
            connection.execute(sa.insert(table), row)

    await database.write(work)


def call(at: datetime, **more: Any) -> dict[str, Any]:
    numbers = {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 50, "cost": 0.25}
    return {"person_id": "", "channel": "web", "purpose": "reply", "model": "tiny", "outcome": "ok", "at": at, **numbers, **more}


@pytest.mark.rule("WO-30")
async def test_usage_is_summed_by_day_person_channel_purpose_and_model(database: Database, clock: FakeClock) -> None:
    await add(database, people, {"id": "p-ada", "name": "Ada", "scope": "people/p-ada", "created_at": clock.now})
    today = clock.now.replace(hour=0, minute=0, second=0)
    await add(
        database,
        model_calls,
        call(today, person_id="p-ada"),
        call(clock.now, person_id="p-ada", outcome="model_busy"),
        call(clock.now, person_id="p-ada", channel="telegram"),
        call(today - timedelta(microseconds=1), person_id="p-ada"),
        call(clock.now, purpose="dream"),
        call(clock.now, person_id="p-gone"),
        call(today - timedelta(days=5)),
    )
    rows = await Reports(database, clock).usage(2)
    shown = [(row.day, row.person, row.channel, row.purpose, row.calls, row.failed, row.input_tokens, row.cost) for row in rows]
    assert sorted(shown) == sorted(
        [
            (date(2026, 3, 14), "", "web", "dream", 1, 0, 100, 0.25),
            (date(2026, 3, 14), "Ada", "telegram", "reply", 1, 0, 100, 0.25),
            (date(2026, 3, 14), "Ada", "web", "reply", 2, 1, 200, 0.5),
            (date(2026, 3, 14), "p-gone", "web", "reply", 1, 0, 100, 0.25),
            (date(2026, 3, 13), "Ada", "web", "reply", 1, 0, 100, 0.25),
        ]
    )
    assert [row.day for row in rows] == sorted((row.day for row in rows), reverse=True)
    assert len(await Reports(database, clock).usage(30)) == 6


def received(delivery_id: str, at: datetime, **more: Any) -> dict[str, Any]:
    place = {"channel": "telegram", "account": "main", "address": "telegram:main:1", "event_key": delivery_id}
    return {"delivery_id": delivery_id, "kind": "message", "state": "done", "received_at": at, **place, **more}


def part(part_id: str, at: datetime, **more: Any) -> dict[str, Any]:
    place = {"channel": "telegram", "account": "main", "address": "telegram:main:1", "kind": "answer", "state": "sent"}
    return {"part_id": part_id, "created_at": at, "updated_at": at, "expires_at": at, **place, **more}


@pytest.mark.rule("CH-217")
async def test_a_message_is_followed_from_receipt_to_platform_ids(database: Database, clock: FakeClock) -> None:
    now = clock.now
    await add(
        database, conversations,
        {"id": "c-1", "key": "telegram:main:1", "channel": "telegram", "account": "main", "kind": "dm", "created_at": now, "updated_at": now},
    )  # fmt: skip
    await add(database, turns, {"id": "t-1", "conversation_id": "c-1", "state": "answered", "model": "tiny", "started_at": now, "ended_at": now})
    await add(
        database,
        inbox,
        received("d-1", now, turn_id="t-1", conversation_id="c-1", person_id="p-ada", message_id="m-1", finished_at=now),
        received("d-2", now, state="ignored", rule="not-mentioned"),
        received("d-3", now, state="dead", rule="failed"),
    )
    await add(
        database,
        outbox,
        part("o-1", now, turn_id="t-1", platform_ids=["41", "42"], attempts=1, attempted_at=now),
        part("o-2", now, turn_id="t-1", state="unknown", unknowns=1, attempts=1, reason="no answer"),
        part("o-3", now, delivery_id="d-3", kind="notice", state="queued"),
    )
    reports = Reports(database, clock)
    assert await reports.delivery("d-1") == Delivery(
        delivery_id="d-1", channel="telegram", account="main", address="telegram:main:1", kind="message", state="done", rule="", attempts=0,
        person_id="p-ada", conversation_id="c-1", message_id="m-1", received_at=now, finished_at=now,
        turn=DeliveryTurn(id="t-1", state="answered", attempt=1, model="tiny", error_code="", started_at=now, ended_at=now),
        parts=(
            DeliveryPart(
                part_id="o-1", kind="answer", state="sent", attempts=1, unknowns=0, reason="", platform_ids=("41", "42"), attempted_at=now,
                created_at=now, updated_at=now,
            ),
            DeliveryPart(
                part_id="o-2", kind="answer", state="unknown", attempts=1, unknowns=1, reason="no answer", platform_ids=(), attempted_at=None,
                created_at=now, updated_at=now,
            ),
        ),
    )  # fmt: skip
    ignored, dead = await reports.delivery("d-2"), await reports.delivery("d-3")
    assert ignored
    assert (ignored.rule, ignored.turn, ignored.parts) == ("not-mentioned", None, ())
    assert dead
    assert [one.part_id for one in dead.parts] == ["o-3"]
    assert await reports.delivery("d-4") is None


@pytest.mark.rule("WO-30")
async def test_memories_are_called_by_their_person_or_place(database: Database, clock: FakeClock) -> None:
    person = {"role": "user", "created_at": clock.now}
    await add(
        database, people, {**person, "id": "p-1", "name": "Ada", "scope": "root"}, {**person, "id": "p-2", "name": "Ben", "scope": "people/p-2"}
    )
    place = {"channel": "telegram", "account": "main", "created_at": clock.now}
    await add(
        database, spaces, {**place, "id": "s-1", "platform_space_id": "1", "title": "Circle"}, {**place, "id": "s-2", "platform_space_id": "2"}
    )
    named = await Reports(database, clock).scope_names({"root", "people/p-2", "spaces/s-1", "spaces/s-2", "people/p-gone", ""})
    assert named == {"root": "Ada", "people/p-2": "Ben", "spaces/s-1": "Circle"}


async def test_counts_and_recent_errors_tell_what_asks_for_attention(database: Database, clock: FakeClock) -> None:
    now, reports = clock.now, Reports(database, clock)
    assert await reports.counts() == {"jobs": {}, "inbox": {}, "outbox": {}}
    job = {"kind": "dream", "not_before": now, "created_at": now, "updated_at": now}
    await add(database, jobs, {**job, "key": "a", "state": "parked"}, {**job, "key": "b", "state": "done"}, {**job, "key": "c", "state": "parked"})
    await add(database, inbox, received("d-1", now, state="dead"), received("d-2", now))
    await add(database, outbox, part("o-1", now, state="unknown"))
    assert await reports.counts() == {"jobs": {"parked": 2}, "inbox": {"dead": 1}, "outbox": {"unknown": 1}}
    for number in range(3):
        await reports.note_error(f"e-{number}", "GET /x", "KeyError")
    newest = RecentError(at=now, delivery_id="e-2", where="GET /x", message="KeyError")
    assert (await reports.recent_errors(2))[0] == newest
    assert len(await reports.recent_errors(2)) == 2
    assert await database.read(lambda connection: connection.execute(sa.select(sa.func.count()).select_from(errors)).scalar()) == 3
