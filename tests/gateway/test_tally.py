"""What the gateway notices about itself while it runs."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

import pytest

from gateway.arrivals.inbox import Waiting
from gateway.channel_set import ChannelSet
from gateway.lanes import Holding, Lanes, RunningTurn
from gateway.metrics import new_metrics
from gateway.tally import LAG_WARNING_S, STUCK_S, Tally

ITEM = Waiting(
    row_id=1, delivery_id="d-1", address="web:main:c-1", conversation_id="c-1", person_id="p-1", message_id="m-1", turn_id="t-1",
    received_at=datetime(2026, 3, 14, tzinfo=UTC),
)  # fmt: skip


@pytest.mark.case("DC-07")
@pytest.mark.rule("CH-216")
async def test_a_turn_without_progress_and_a_late_loop_are_lines_for_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    begun = asyncio.Event()

    async def stuck(turn: RunningTurn) -> None:
        turn.progress -= STUCK_S + 1
        begun.set()
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING):
        async with asyncio.TaskGroup() as group:
            lanes = Lanes(group, stuck)
            lanes.put(ITEM, Holding(quiet_s=0, text_max=1000))
            await begun.wait()
            tally = Tally(new_metrics(), ChannelSet(group=group, clock=lambda: datetime.now(UTC)), lambda: datetime.now(UTC))
            beating = group.create_task(tally.beat(lanes))
            await asyncio.sleep(0.5)
            time.sleep(LAG_WARNING_S + 1)  # noqa: ASYNC251  # what a tool must never do: it holds the loop
            await asyncio.sleep(0.1)
            beating.cancel()
            for task in asyncio.all_tasks() - {asyncio.current_task(), beating}:
                if task.get_name().startswith("lane "):
                    task.cancel()
    lines = [record.getMessage() for record in caplog.records]
    assert any("turn t-1 has made no progress" in line for line in lines)
    assert any("the event loop came round" in line for line in lines)
