"""Window profiles: how much of a talk is sent word for word, what leaves when it is too much, and which summaries stand for it (RS-1 to RS-8).

Profiles are data. Three are built in; an operator may add more under `profiles`. Switching changes what is sent, never what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.recall.kinds import CALENDAR, ROLLING, Kind
from memory.window import TurnSize, edge_after_trim


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProfile:
    """One profile. 0 is no limit.

    `turns`, `messages`, `tokens`: of the live window; whichever is passed first counts. `context_share`: of the model's window, another limit in
    tokens.
    `drop`: what leaves then: the oldest half of the turns, or a block of `block` messages (fewer when they hold `block_share` of the token limit).
    `days`: the window is today, days without a summary, and a tail of earlier ones; the limits above do not count.
    `sent`: kinds of summaries that stand in the prompt; empty: the blocks of trimmed turns. `stored`: kinds made although they are not sent.
    """

    name: str
    turns: int = 0
    messages: int = 0
    tokens: int = 0
    context_share: float = 0.0
    drop: Literal["oldest_half", "block"] = "oldest_half"
    block: int = 10
    block_share: float = 0.2
    days: bool = False
    sent: tuple[Kind, ...] = ()
    stored: tuple[Kind, ...] = ()


BUILT_IN: Mapping[str, WindowProfile] = {
    "assistant": WindowProfile(name="assistant", turns=20, tokens=50_000),
    "companion": WindowProfile(name="companion", messages=50, tokens=10_000, context_share=0.25, drop="block", sent=ROLLING),
    "calendar": WindowProfile(name="calendar", days=True, sent=CALENDAR, stored=CALENDAR),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSize:
    """One message of the live window: its number, its estimated tokens, and which turn it belongs to."""

    seq: int
    tokens: int
    turn_id: str = ""


def token_limit(profile: WindowProfile, model_window: int) -> int:
    """Tokens of raw talk that the profile allows a model with `model_window` tokens; 0 for no limit (RS-5)."""
    share = int(model_window * profile.context_share)
    return min(profile.tokens, share) if profile.tokens and share else profile.tokens or share


def edge_after(profile: WindowProfile, window: Sequence[MessageSize], *, model_window: int, floor_tokens: int = 0) -> int | None:
    """The number of the last message that leaves the window, or None when nothing must.

    `window`: the live messages, oldest first, the newest one last: that one never leaves (RS-7). A profile by days moves no edge here.
    """
    limit = token_limit(profile, model_window)
    if profile.days or not (limit or profile.messages or profile.turns):
        return None
    if profile.drop == "oldest_half":
        return edge_after_trim(_turns(window), max_turns=profile.turns or len(window), max_tokens=limit or _size(window), floor_tokens=floor_tokens)
    return _edge_by_blocks(profile, window, limit)


def _edge_by_blocks(profile: WindowProfile, window: Sequence[MessageSize], limit: int) -> int | None:
    """The limit is exact, the edge moves in blocks, so that the start of the prompt stays the same between two moves (RS-6)."""
    gone, size = 0, _size(window)
    while gone < len(window) - 1 and ((limit and size > limit) or (profile.messages and len(window) - gone > profile.messages)):
        held = 0
        for _ in range(min(profile.block, len(window) - 1 - gone)):
            held += window[gone].tokens
            gone += 1
            if limit and held >= profile.block_share * limit:
                break
        size -= held
    return window[gone - 1].seq if gone else None


def _size(window: Sequence[MessageSize]) -> int:
    return sum(message.tokens for message in window)


def _turns(window: Sequence[MessageSize]) -> list[TurnSize]:
    """Messages of one turn are one; an answer stands with its question."""
    turns: list[TurnSize] = []
    previous: str | None = None
    for message in window:
        if turns and message.turn_id and message.turn_id == previous:
            turns[-1] = replace(turns[-1], last_seq=message.seq, tokens=turns[-1].tokens + message.tokens)
        else:
            turns.append(TurnSize(last_seq=message.seq, tokens=message.tokens))
        previous = message.turn_id
    return turns
