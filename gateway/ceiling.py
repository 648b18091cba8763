"""What leaves when a prompt reaches its ceiling, decided before the first model call of a turn, and only then (RS-67, RS-69, RS-162).

The edge of the window jumps once, to the oldest turn that leaves the prompt under 60 % of the ceiling; it is saved with what stands for the messages
that left, in one transaction, and later room brings nothing back. A jump that a person undid is made again only when what it had kept has grown to
the ceiling by itself; until then the messages that do not fit are left out of the single prompt (docs/decisions/0017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.turn import Weight
from gateway import calendar_state, trimming, windows
from gateway.config import Config
from gateway.talk import history, message_sizes
from gateway.turn_store import TurnStart, standing_of
from memory import conversations, tokens
from memory.conversations import Message
from memory.database import Database
from memory.profiles import token_limit
from memory.recall import edge_jump
from memory.recall.edge_jump import Jump
from memory.recall.standing_text import LEFT_OUT

AHEAD_SHARE = 0.8  # of the ceiling, from which on what would leave next is summarised ahead

EXTRACT_AROUND = 40  # tokens of the marks around an extract


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A turn under its ceiling. `start`: with the window of now; `jump`: of its edge, None for none; `left`: messages that left by it; `ahead`: the
    number up to which messages would leave next and are to be summarised now, 0 for none."""

    start: TurnStart
    ceiling: int = 0
    jump: Jump | None = None
    left: int = 0
    ahead: int = 0


class Ceiling:
    def __init__(self, *, db: Database, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._db = db
        self._config = config
        self._clock = clock

    async def hold(self, start: TurnStart, weight: Weight, *, answering: str, language: str, reserve: int = 0) -> Held:
        """`weight`: of the turn's prompt with the whole window and nothing recalled; `answering`, `language`: as in `talk.history`; `reserve`: tokens
        that what is recalled may still take. Raises StoreUnavailable."""
        held, size = Held(start=start, ceiling=weight.ceiling), weight.tokens + reserve
        if size < AHEAD_SHARE * weight.ceiling:
            return held
        sizes = _sizes(start, answering, language)
        turns = may_leave(start, sizes)
        around = size - weight.talk + sum(sizes) - sum(turn.tokens for turn in turns)
        if size >= weight.ceiling and not _undone_holds(start, turns, around, weight.ceiling):
            return await self._db.write(lambda connection: self._jump(connection, held, turns, around))
        if windows.into_at_the_ceiling(self._config(), start.conversation) != "days":
            return held
        return replace(held, ahead=edge_jump.target(turns, around=around, ceiling=weight.ceiling) or 0)

    def _jump(self, connection: sa.Connection, held: Held, turns: Sequence[edge_jump.Turn], around: int) -> Held:
        start, config, now = held.start, self._config(), self._clock()
        chat = conversations.held(connection, start.conversation.id)
        if chat is None or chat.window_edge != start.conversation.window_edge:  # the context was emptied meanwhile
            return held
        into = windows.into_at_the_ceiling(config, chat)

        def kept(edge: int) -> tuple[Message, ...]:
            return tuple(message for message in start.history if message.seq > edge)

        def standing(edge: int) -> str:
            moved = replace(chat, window_edge=edge)
            return standing_of(connection, moved, config, now, start.questions, kept(edge), start.person) if start.scope else ""

        def growth(edge: int) -> int:
            if into == "days":
                return tokens.count(standing(edge)) - tokens.count(start.blocks)
            if into == "nothing" or not start.scope:
                return 0
            return tokens.count(trimming.extract_of(connection, chat.id, start.scope, chat.window_edge + 1, edge)) + EXTRACT_AROUND

        edge = edge_jump.target(turns, around=around, ceiling=held.ceiling, growth=growth)
        if edge is None:
            return held
        trimming.left(connection, chat, start.scope, chat.window_edge + 1, edge, now, into=into)
        edge_jump.jump(connection, chat, edge)
        if into == "days":
            calendar_state.summarise_ahead(connection, config, chat.id, edge)
        moved = conversations.conversation(connection, chat.id) or chat
        after = replace(start, conversation=moved, history=kept(edge), blocks=standing(edge))
        return replace(held, start=after, jump=Jump(chat.window_edge, edge), left=len(start.history) - len(after.history))


def sent_window(held: Held, config: Config) -> dict[str, Any]:
    """For the receipt, in plain JSON: numbers of messages, and estimated tokens (RS-7, RS-63, RS-67, RS-77, RS-171)."""
    start, chat = held.start, held.start.conversation
    profile = windows.profile_of(config, chat)
    limit = token_limit(profile, windows.model_window(config, chat)) or held.ceiling
    newest = sum(size.tokens for size in message_sizes(start.questions))
    return {
        "profile": profile.name,
        "first": min(message.seq for message in (*start.history, *start.questions)),
        "last": max(message.seq for message in start.questions),
        "ceiling": held.ceiling,
        "jump": None if held.jump is None else {"before": held.jump.before, "edge": held.jump.edge, "messages": held.left},
        "newest_alone": bool(limit) and newest > limit,
        "summaries_cut": LEFT_OUT in start.blocks,
    }


def may_leave(start: TurnStart, sizes: Sequence[int]) -> list[edge_jump.Turn]:
    """The turns of the history that may leave, the oldest first: never a question without an answer at its end, and only where all messages up to a
    number are on one side of the edge. `sizes`: tokens of each message of the history."""
    answered = max((at + 1 for at, message in enumerate(start.history) if message.role == "assistant"), default=0)
    log, found = start.history[:answered], list[edge_jump.Turn]()
    rest = [*start.history, *start.questions]
    least = _least_behind([message.seq for message in rest])
    highest = size = 0
    for at, message in enumerate(log):
        highest, size = max(highest, message.seq), size + sizes[at]
        behind = rest[at + 1]
        begins = behind.role == "user" and (behind.turn_id != message.turn_id or not behind.turn_id)
        if begins and highest < least[at + 1]:
            found.append(edge_jump.Turn(highest, size))
            size = 0
    return found


def _least_behind(seqs: Sequence[int]) -> list[int]:
    """At each place, the smallest number from there on."""
    found = list(seqs)
    for at in range(len(found) - 2, -1, -1):
        found[at] = min(found[at], found[at + 1])
    return found


def _undone_holds(start: TurnStart, turns: Sequence[edge_jump.Turn], around: int, ceiling: int) -> bool:
    """Whether a jump that was undone still is: what it had kept does not fill the prompt by itself."""
    edge = edge_jump.undone(start.conversation)
    return edge is not None and around + sum(turn.tokens for turn in turns if turn.last_seq > edge) < ceiling


def _sizes(start: TurnStart, answering: str, language: str) -> list[int]:
    """Tokens of each message of the history as a prompt shows it."""

    def size(message: Message) -> int:
        in_group = start.conversation.space_id is not None
        [said] = history([message], language=language, in_group=in_group, answering=answering, dates=start.dates)
        return tokens.MESSAGE_TOKENS + tokens.count(said.text)

    return [size(message) for message in start.history]
