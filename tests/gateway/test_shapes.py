"""Long answers are made into HTML beside the event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from gateway.shapes import message_json, prepare
from memory.conversations import Message
from memory.ids import ConversationId, MessageId, TurnId

TABLE = "| a | b | c |\n|---|---|---|\n" + "| x | **y** | `z` |\n" * 2_000  # half a second and more


@pytest.mark.rule("WO-13")
async def test_the_loop_goes_on_while_a_long_answer_is_rendered() -> None:
    message = Message(
        seq=1, id=MessageId("m-1"), conversation_id=ConversationId("c-1"), turn_id=TurnId("t-1"), role="assistant", author_person_id="",
        author_name="Yume", text=TABLE, state="live", origin="assistant", attempt=1, outcome="", attachments=(), reply_to=None,
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )  # fmt: skip
    rendering = asyncio.create_task(prepare([message]))
    rounds = 0
    while not rendering.done():
        await asyncio.sleep(0)
        rounds += 1
    assert rounds > 10, "rendered on the loop it would be done in the first round"
    html = message_json(message)["html"]
    assert html.count("<tr>") == 2_001
    assert message_json(message)["html"] is html, "made once"
