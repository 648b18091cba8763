"""Live events: what a viewer gets, how it takes up again, and in how many writes."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from gateway.streams import BEGINNING, GATHER_S, Streams
from tests.harness import Running, running
from tests.patience import patience
from tests.quick import quick


async def batches(streams: Streams, count: int, last_id: str = "") -> list[list[str]]:
    """The names of the first `count` batches that a viewer of chat c is sent."""
    found: list[list[str]] = []
    async with aclosing(streams.follow("c", last_id)) as following:
        async for batch in following:
            found.append([event.name for event in batch])
            if len(found) == count:
                break
    return found


@pytest.mark.rule("WO-11")
@quick
async def test_events_that_follow_each_other_closely_leave_together_and_in_order() -> None:
    streams = Streams()
    async with asyncio.TaskGroup() as group:
        viewer = group.create_task(batches(streams, 1))
        await asyncio.sleep(0)
        streams.begin("c", "t", 1)
        for _ in range(3):
            await asyncio.sleep(GATHER_S / 20)
            streams.publish("c", "delta", {"text": "x"})
        streams.end("c", "t", "answered")
    assert viewer.result() == [["turn", "delta", "delta", "delta", "done"]]


@pytest.mark.rule("WO-11")
async def test_a_lone_event_is_not_held_back_until_the_next() -> None:
    streams = Streams()
    async with asyncio.timeout(patience(5)), asyncio.TaskGroup() as group:
        viewer = group.create_task(batches(streams, 1))
        await asyncio.sleep(0)
        streams.publish("c", "delta", {"text": "x"})
    assert viewer.result() == [["delta"]]


@pytest.mark.rule("WO-11")
async def test_who_began_a_chat_gets_all_of_it_while_that_is_still_there() -> None:
    streams = Streams()
    streams.publish("c", "chat", {"title": "Hi"})
    streams.begin("c", "t1", 1)
    streams.end("c", "t1", "answered")
    assert await batches(streams, 1, BEGINNING) == [["chat", "turn", "done"]]
    for turn in ("t2", "t3"):
        streams.begin("c", turn, 1)
    assert await batches(streams, 1, BEGINNING) == [["turn"]]  # the running one, as for anybody who is new


@pytest.mark.rule("WO-11")
@pytest.mark.case("WP-01")
async def test_a_viewer_takes_up_after_its_last_event_and_a_new_one_gets_the_running_turn_whole() -> None:
    streams = Streams()
    streams.begin("c", "t1", 1)
    streams.end("c", "t1", "answered")
    streams.begin("c", "t2", 1)
    streams.publish("c", "delta", {"text": "x"})
    async with aclosing(streams.follow("c")) as following:
        seen = await anext(following)
    assert [event.name for event in seen] == ["turn", "delta"]
    streams.end("c", "t2", "answered")
    assert await batches(streams, 1, streams.event_id(seen[0])) == [["delta", "done"]]


@pytest.mark.rule("WO-11")
async def test_the_streams_of_a_dropped_chat_end_and_no_others() -> None:
    streams = Streams()
    async with asyncio.timeout(patience(5)), asyncio.TaskGroup() as group:
        viewers = [group.create_task(batches(streams, 1)) for _ in range(2)]
        await asyncio.sleep(0)
        streams.drop("another")
        await asyncio.sleep(0)
        assert not any(viewer.done() for viewer in viewers)
        streams.drop("c")
    assert [viewer.result() for viewer in viewers] == [[], []]
    assert not streams.watched("c")


async def end_of_stream(gateway: Running, chat: str, began: asyncio.Event) -> None:
    async with gateway.http.get(f"{gateway.url}/api/chats/{chat}/events") as answer:
        await answer.content.readline()
        began.set()
        async for _ in answer.content:
            pass


@pytest.mark.rule("WO-11")
async def test_a_stream_ends_by_itself_when_its_chat_is_deleted_on_the_page(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(["Yes."])) as gateway:
        chat, began = await gateway.chat(), asyncio.Event()
        async with asyncio.timeout(patience(10)), asyncio.TaskGroup() as group:
            group.create_task(end_of_stream(gateway, chat, began))
            await began.wait()
            async with gateway.http.delete(f"{gateway.url}/api/chats/{chat}") as answer:
                assert answer.status == 204
        async with gateway.http.get(f"{gateway.url}/api/chats/{chat}/events") as answer:
            assert answer.status == 404, "and is not opened again"


@pytest.mark.slow  # a heartbeat comes every 15 seconds
@pytest.mark.rule("WO-11")
async def test_a_stream_ends_with_a_heartbeat_when_its_chat_is_taken_away_elsewhere(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(["Yes."])) as gateway:
        chat, began = await gateway.chat(), asyncio.Event()
        async with asyncio.timeout(patience(40)), asyncio.TaskGroup() as group:
            group.create_task(end_of_stream(gateway, chat, began))
            await began.wait()
            with closing(sqlite3.connect(gateway.data_dir / "yumegate.db")) as another, another:
                another.execute("UPDATE conversations SET deleted_at = created_at WHERE id = ?", (chat,))
