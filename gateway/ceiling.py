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
from gateway import trimming, windows
from gateway.config import Config
from gateway.receipts import summaries
from gateway.summaries import calendar_state
from gateway.talk import history, message_sizes
from gateway.turn_store import TurnStart, standing_of
from memory import conversations, tokens
from memory.blocks import Block
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.profiles import token_limit
from memory.recall import edge_jump
from memory.recall.edge_jump import Jump
from memory.recall.fitting import NOTHING, Standing

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
        leaving = _leaving(start, weight, size, answering, language)
        if size >= weight.ceiling and not leaving.undone_holds:
            return await self._db.write(lambda connection: self._jump(connection, held, leaving))
        if windows.into_at_the_ceiling(self._config(), start.conversation) != "days":
            return held
        return replace(held, ahead=edge_jump.target(leaving.turns, around=leaving.around, ceiling=weight.ceiling) or 0)

    async def foresee(self, start: TurnStart, weight: Weight, *, answering: str, language: str, reserve: int) -> Held:
        """The turn as `hold` would leave it, with nothing written (RS-78)."""
        held, size = Held(start=start, ceiling=weight.ceiling), weight.tokens + reserve
        leaving = _leaving(start, weight, size, answering, language)
        if size < weight.ceiling or leaving.undone_holds:
            return held
        return await self._db.read(lambda connection: self._would_jump(connection, held, leaving))

    def _jump(self, connection: sa.Connection, held: Held, leaving: _Leaving) -> Held:
        start, config, now = held.start, self._config(), self._clock()
        chat = conversations.held(connection, start.conversation.id)
        if chat is None or chat.window_edge != start.conversation.window_edge:  # the context was emptied meanwhile
            return held
        edge = self._target(connection, held, leaving, chat)
        if edge is None:
            return held
        into = windows.into_at_the_ceiling(config, chat)
        trimming.left(connection, chat, start.scope, chat.window_edge + 1, edge, now, into=into)
        edge_jump.jump(connection, chat, edge)
        if into == "days":
            calendar_state.summarise_ahead(connection, config, chat.id, edge)
        moved = conversations.conversation(connection, chat.id) or chat
        return self._after(connection, held, moved, before=chat.window_edge)

    def _would_jump(self, connection: sa.Connection, held: Held, leaving: _Leaving) -> Held:
        start, chat = held.start, held.start.conversation
        edge = self._target(connection, held, leaving, chat)
        if edge is None:
            return held
        ahead: list[Block] = []
        if start.scope and windows.into_at_the_ceiling(self._config(), chat) in ("blocks", "rolling"):
            first = chat.window_edge + 1
            extract = trimming.extract_of(connection, chat.id, start.scope, first, edge)
            ahead = [Block(id=0, conversation_id=chat.id, first_seq=first, last_seq=edge, kind="extract", text=extract)]
        return self._after(connection, held, replace(chat, window_edge=edge), before=chat.window_edge, ahead=ahead)

    def _target(self, connection: sa.Connection, held: Held, leaving: _Leaving, chat: Conversation) -> int | None:
        """Where the edge goes, None for nowhere."""
        start, into = held.start, windows.into_at_the_ceiling(self._config(), chat)

        def growth(edge: int) -> int:
            if into == "days":
                return tokens.count(self._standing(connection, start, replace(chat, window_edge=edge)).text) - tokens.count(start.blocks)
            if into == "nothing" or not start.scope:
                return 0
            return tokens.count(trimming.extract_of(connection, chat.id, start.scope, chat.window_edge + 1, edge)) + EXTRACT_AROUND

        return edge_jump.target(leaving.turns, around=leaving.around, ceiling=held.ceiling, growth=growth)

    def _after(self, connection: sa.Connection, held: Held, moved: Conversation, *, before: int, ahead: Sequence[Block] = ()) -> Held:
        """The turn with the window that it has behind the edge of `moved`, which was at `before`."""
        start, edge = held.start, moved.window_edge
        kept, standing = _kept(start, edge), self._standing(connection, start, moved, ahead)
        after = replace(start, conversation=moved, history=kept, standing=standing)
        return replace(held, start=after, jump=Jump(before, edge), left=len(start.history) - len(kept))

    def _standing(self, connection: sa.Connection, start: TurnStart, moved: Conversation, ahead: Sequence[Block] = ()) -> Standing:
        if not start.scope:
            return NOTHING
        kept = _kept(start, moved.window_edge)
        return standing_of(connection, moved, self._config(), self._clock(), start.questions, kept, start.person, ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaving:
    """What may leave a prompt, and the tokens of all the rest. `undone_holds`: a jump that was undone still is."""

    turns: Sequence[edge_jump.Turn]
    around: int
    undone_holds: bool


def _leaving(start: TurnStart, weight: Weight, size: int, answering: str, language: str) -> _Leaving:
    """`size`: of the whole prompt."""
    sizes = _sizes(start, answering, language)
    turns = may_leave(start, sizes)
    around = size - weight.talk + sum(sizes) - sum(turn.tokens for turn in turns)
    return _Leaving(turns=turns, around=around, undone_holds=_undone_holds(start, turns, around, weight.ceiling))


def _kept(start: TurnStart, edge: int) -> tuple[Message, ...]:
    return tuple(message for message in start.history if message.seq > edge)


def sent_window(held: Held, config: Config, *, standing_cut: bool) -> dict[str, Any]:
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
        "summaries_cut": start.standing.cut or standing_cut,
        **summaries(start.standing),
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
