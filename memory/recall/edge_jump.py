"""How far the edge of the live window jumps at the ceiling, where it was before, and the way back (RS-67, RS-68).

`target` is pure, the others are plain functions on a `Connection`. The place before the jump is kept beside the chat's own settings: a later jump,
and an edge that went on by itself, end the way back. What was undone is kept there too, so that the very next reply does not jump again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa

from memory import blocks, conversations
from memory.conversations import Conversation

KEY = conversations.JUMPED
KEPT_SHARE = 0.6  # of the ceiling, under which a jump leaves the prompt


@dataclass(frozen=True, slots=True)
class Jump:
    """Numbers of the last message that is not sent: before the jump and after it."""

    before: int
    edge: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What may leave together: the number of its last message, and the tokens that it takes of a prompt."""

    last_seq: int
    tokens: int


def target(turns: Sequence[Turn], *, around: int, ceiling: int, growth: Callable[[int], int] = lambda _: 0) -> int | None:
    """The edge that leaves the prompt under 60 % of `ceiling`, with as many of `turns` kept as can be; None when none may leave.

    `turns`: those that may leave, the oldest first; `around`: tokens of everything else; `growth`: of what comes to stand for all up to a number;
    dear to know, and more talk is hardly told in less, so it is asked again only where its last answer would fit.
    Where everything else is 60 % or more by itself, the turns that stay take under 60 % of the room beside it; where nothing helps, all leave.
    """
    share = KEPT_SHARE * ceiling
    goal = share if around < share else around + KEPT_SHARE * max(0, ceiling - around)
    size, grown = around + sum(turn.tokens for turn in turns), 0
    for turn in turns:
        size -= turn.tokens
        if size + grown < goal:
            grown = max(0, growth(turn.last_seq))
            if size + grown < goal:
                return turn.last_seq
    return turns[-1].last_seq if turns else None


def last(chat: Conversation) -> Jump | None:
    """The jump that can be undone: the edge is still where it put it."""
    kept = chat.settings.get(KEY)
    if not isinstance(kept, Mapping):
        return None
    values = cast("Mapping[str, Any]", kept)
    before, edge = values.get("before"), values.get("edge")
    if not isinstance(before, int) or not isinstance(edge, int) or edge != chat.window_edge or before >= edge:
        return None
    return Jump(before, edge)


def undone(chat: Conversation) -> int | None:
    """Where the edge was put by a jump that was undone; None when there was none, or the edge has gone further since."""
    kept = chat.settings.get(KEY)
    edge = cast("Mapping[str, Any]", kept).get("undone") if isinstance(kept, Mapping) else None
    return edge if isinstance(edge, int) and edge > chat.window_edge else None


def jump(connection: sa.Connection, chat: Conversation, edge: int) -> None:
    """Move the edge to `edge` and remember where it was. An edge that does not go forward stays."""
    if edge > chat.window_edge:
        conversations.change_settings(connection, chat.id, {KEY: {"before": chat.window_edge, "edge": edge}})
        conversations.move_edge(connection, chat.id, edge)


def undo(connection: sa.Connection, conversation_id: str) -> Jump | None:
    """Put the edge back where it was before the last jump; None when there is nothing to undo.

    What stood for the messages goes, for they are live again.
    """
    chat = conversations.held(connection, conversation_id)
    done = last(chat) if chat is not None else None
    if chat is None or done is None:
        return None
    for block in blocks.meeting(connection, chat.id, done.before + 1, done.edge):
        if block.first_seq > done.before:
            blocks.drop_one(connection, block)
    conversations.change_settings(connection, chat.id, {KEY: {"undone": done.edge}})
    conversations.change(connection, chat.id, window_edge=done.before)
    return done
