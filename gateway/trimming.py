"""What happens when turns leave the context, in the very transaction that moves the edge: nothing is pending in memory only (WD-42, WD-94).

An extract stands for them at once; a job makes the summary, for the context and for the day's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from gateway.jobs.table import Job, enqueue, find_job
from gateway.saved import deep_gate
from gateway.summaries.plan import OVERFLOW, TRIM
from gateway.talk import sides
from memory import blocks, conversations, coverage
from memory.conversations import Conversation, Message
from memory.extract import extract
from memory.summaries import words_of
from memory.window import TurnSize

KEPT_BY_COMPACT = 2  # turns
ROLLING = "rolling"  # the kind of the job that makes rolling summaries

# What talk that leaves becomes: a block and the day's file, rolling summaries, what `live_window` makes of a day without a row, or nothing (RS-12).
Into = Literal["blocks", "rolling", "days", "nothing"]


def left(
    connection: sa.Connection,
    chat: Conversation,
    scope: str,
    first: int,
    last: int,
    now: datetime,
    *,
    overflow: bool = False,
    into: Into = "blocks",
) -> None:
    """The messages numbered `first` to `last` leave the context of `chat`. Of talk without a scope (challenge, memory off, guests) nothing is kept.

    `overflow`: the model refused them; their summary stands under *Context Overflow Recovery* (WD-94). The caller moves the edge. Where they become
    rolling summaries, deep memory reads them when these are made (RS-43).
    """
    if into == "nothing":
        return
    if not scope or not coverage.talk_in(connection, chat.id, scope, [(first, last)]):
        return
    if overflow or into != "days":
        blocks.put_extract(connection, chat.id, first, last, extract_of(connection, chat.id, scope, first, last), now)
    if overflow or into == "blocks":
        enqueue(connection, _job(chat.id, scope, first, last, kind=OVERFLOW if overflow else TRIM))
    if into == "rolling":
        enqueue(connection, rolling_job(chat.id, scope), again=True)
    else:
        deep_gate.queue(connection, chat, scope, last, now)


def extract_of(connection: sa.Connection, conversation_id: str, scope: str, first: int, last: int) -> str:
    """What stands for messages numbered `first` to `last` until a summary is made: one item a line."""
    return "\n".join(item.text for item in extract(words_of(coverage.talk_in(connection, conversation_id, scope, [(first, last)]))))


def rolling_job(conversation_id: str, scope: str) -> Job:
    """Rolling summaries of what left the window of a chat, one run of it at a time."""
    return Job(kind=ROLLING, key=conversation_id, scope=scope, payload={"conversation": conversation_id})


def compact(connection: sa.Connection, chat: Conversation, scope: str, turns: Sequence[TurnSize], now: datetime, *, into: Into = "blocks") -> int:
    """`/compact`: all but the last two turns leave, as by a trim. Returns how many left. `turns`: those of the live window, oldest first."""
    gone = turns[: len(turns) - KEPT_BY_COMPACT] if len(turns) > KEPT_BY_COMPACT else ()
    if gone:
        left(connection, chat, scope, chat.window_edge + 1, gone[-1].last_seq, now, into=into)
        conversations.move_edge(connection, chat.id, gone[-1].last_seq)
    return len(gone)


def changed(connection: sa.Connection, conversation_id: str, first: int, last: int, now: datetime) -> None:
    """Messages numbered `first` to `last` were edited, deleted or taken back (`memory.conversations` marks the files' side stale, WD-59).

    Blocks become extracts of what is left at once, so that deleted words leave the context with the message; their summaries are made anew.
    """
    for block in blocks.meeting(connection, conversation_id, first, last):
        scope = connection.execute(_SCOPE, {"of": conversation_id, "first": block.first_seq, "last": block.last_seq}).scalar()
        talk = coverage.talk_in(connection, conversation_id, scope, [(block.first_seq, block.last_seq)]) if scope else []
        if not scope or not talk:
            blocks.drop_one(connection, block)
            continue
        blocks.put_extract(
            connection, conversation_id, block.first_seq, block.last_seq, "\n".join(item.text for item in extract(words_of(talk))), now
        )
        again = _job(conversation_id, scope, block.first_seq, block.last_seq, kind=TRIM, round_=now.isoformat())
        if block.kind == "summary" or any(find_job(connection, kind, again.key) for kind in (TRIM, OVERFLOW)):
            enqueue(connection, again, again=True)  # else it stays an extract: rolling summaries stand for it


def edge_of_left_out(history: Sequence[Message], left_out: int, *, answering: str = "") -> int | None:
    """The number of the last message among the `left_out` oldest ones of a prompt, as `talk.history` joins messages; None for none.

    `history`: of the turn's start; `left_out`: `Record.left_out` after the model's refusal (WD-94, WD-96); `answering` as there.
    """
    gone = sides(history, answering=answering)[: max(0, left_out)]
    return max((message.seq for _, messages in gone for message in messages), default=None)


def _job(conversation_id: str, scope: str, first: int, last: int, *, kind: str, round_: str = "") -> Job:
    payload: dict[str, object] = {"conversation": conversation_id, "first": first, "last": last}
    return Job(kind=kind, key=f"{conversation_id}:{last}", scope=scope, payload=payload | ({"round": round_} if round_ else {}))


_SCOPE = (
    sa.select(conversations.messages.c.scope)
    .where(
        conversations.messages.c.conversation_id == sa.bindparam("of"),
        conversations.messages.c.seq.between(sa.bindparam("first"), sa.bindparam("last")),
        conversations.messages.c.scope != "",
    )
    .limit(1)
)
