"""Two transactions on one chat at once, as PostgreSQL runs them."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from memory import conversations
from memory.database import Database
from tests.conftest import FakeClock
from tests.harness import eventually

_WAITING = sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
async def test_a_chat_that_is_held_and_one_that_is_written_to_wait_for_each_other_but_never_for_ever(database: Database, clock: FakeClock) -> None:
    """A new message holds its chat's row as a foreign key does. A lock that this bars, behind a change of the row, was a deadlock: 503."""
    chat = await database.write(lambda c: conversations.create_conversation(c, now=clock(), key="web::1", channel="web", account="main", kind="web"))
    changed, both = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def change(connection: sa.Connection) -> None:
        conversations.change(connection, chat, title="first")
        loop.call_soon_threadsafe(changed.set)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        assert conversations.change_settings(connection, chat, {"one": 1}) is not None

    def write(connection: sa.Connection) -> None:
        conversations.add_message(connection, now=clock(), conversation_id=chat, role="user", text="hello")

    async def somebody_waits() -> bool:
        return bool(await database.read(lambda c: c.execute(_WAITING).scalar_one()))

    async with asyncio.TaskGroup() as group:
        group.create_task(database.write(change))
        await changed.wait()
        group.create_task(database.write(write))
        await eventually(somebody_waits)
        both.set()
    found = await database.read(lambda c: conversations.conversation(c, chat))
    assert found is not None
    assert (found.title, found.settings, found.last_seq > 0) == ("first", {"one": 1}, True)
