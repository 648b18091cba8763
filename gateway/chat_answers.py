"""Waiting for the answer to one message of a chat: through the live stream while it is made, from the stored log once it is there (WO-11, WO-50).

The log is the truth. The stream only says when to look, and what to show meanwhile; so nobody waits for ever for an answer that was dropped, was
given together with another one, or was there before.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

import sqlalchemy as sa

from agent.llm.port import Finish, Usage
from gateway.arrivals.inbox import UNFINISHED
from gateway.progress import Ended, Grown, Quiet, Step
from gateway.streams import StreamEvent, Streams
from memory import conversations
from memory.database import Database
from memory.schema import inbox, messages, turns

QUIET_S = 5.0

_ROW = sa.select(inbox.c.state).where(inbox.c.message_id == sa.bindparam("message")).order_by(inbox.c.id.desc()).limit(1)
_TURN = sa.select(turns.c.state, turns.c.error_code, turns.c.receipt, turns.c.ended_at).where(turns.c.id == sa.bindparam("turn"))
_COMMAND_ANSWER = (
    sa.select(messages.c.text)
    .where(messages.c.conversation_id == sa.bindparam("chat"), messages.c.seq > sa.bindparam("after"), messages.c.role == "notice")
    .where(messages.c.origin == "command")
    .order_by(messages.c.seq)
    .limit(1)
)


class ChatAnswers:
    def __init__(self, db: Database, streams: Streams) -> None:
        self._db = db
        self._streams = streams

    def here(self, chat_id: str) -> str:
        """Where to `follow` from; to be taken before the message is posted."""
        return self._streams.here(chat_id)

    async def follow(self, chat_id: str, message_id: str, turn_id: str, here: str) -> AsyncGenerator[Step]:
        """The answer to a message as it grows, `Ended` last. `turn_id` is the message's own turn, empty for a command. Closing this stops nothing."""
        draft = ""
        while True:
            if (ended := await self._db.read(partial(standing, message_id=message_id))) is not None:
                yield ended
                return
            if self._streams.closed:
                yield Ended(state="failed", code="draining")
                return
            async with aclosing(self._streams.follow(chat_id, here, heartbeat_s=QUIET_S)) as batches:
                async for batch in batches:
                    grown = _grown(draft, batch, turn_id)
                    yield Quiet() if grown == draft else Grown(grown)
                    draft = grown
                    look = not batch or any(event.name == "done" or (event.name == "message" and not turn_id) for event in batch)
                    if look and (ended := await self._db.read(partial(standing, message_id=message_id))) is not None:
                        yield ended
                        return
            here = self._streams.here(chat_id)  # the stream ended: the program stops, or we fell behind and begin again


def standing(connection: sa.Connection, message_id: str) -> Ended | None:
    """How a message was answered; None while it waits or its turn runs."""
    message = conversations.message(connection, message_id)
    if message is None:
        return Ended(state="failed", code="gone")
    if connection.execute(_ROW, {"message": message_id}).scalar() in UNFINISHED:
        return None
    if not message.turn_id:
        text = connection.execute(_COMMAND_ANSWER, {"chat": message.conversation_id, "after": message.seq}).scalar()
        return Ended(state="answered" if text else "empty", text=text or "")
    turn = connection.execute(_TURN, {"turn": message.turn_id}).one_or_none()
    if turn is None:
        return Ended(state="stopped")  # dropped before its turn began
    if turn.ended_at is None:
        return None
    said = [each.text for each in conversations.of_turn(connection, message.turn_id) if each.role == "assistant"]
    receipt: dict[str, Any] = turn.receipt or {}
    finish = Finish(receipt["finish"]) if receipt.get("finish") else None
    return Ended(state=turn.state, text="\n\n".join(said), code=turn.error_code, usage=_usage(receipt), finish=finish)


def _grown(draft: str, batch: list[StreamEvent], turn_id: str) -> str:
    """The draft of turn `turn_id` after `batch`. A turn that begins (again) begins with nothing."""
    for event in batch:
        if event.name in ("turn", "reset", "delta"):
            data: dict[str, Any] = json.loads(event.data)
            if data["turn_id"] == turn_id:
                draft = draft + data["text"] if event.name == "delta" else ""
    return draft


def _usage(receipt: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=int(receipt.get("input_tokens", 0)),
        output_tokens=int(receipt.get("output_tokens", 0)),
        cached_tokens=int(receipt.get("cached_tokens", 0)),
        estimated=bool(receipt.get("estimated", False)),
    )
