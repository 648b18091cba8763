"""Which talk leaves the window with the answer to it, by the profile of the chat and by what the model refused (WD-40, WD-94, RS-6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.turn import Record
from gateway import trimming, windows
from gateway.config import Config
from gateway.talk import message_sizes
from gateway.turn_store import TurnStart
from memory import tokens
from memory.profiles import edge_after
from memory.recall import edge_jump


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`seq`: number of the last message that leaves, None for none; `overflowed`: the model refused the talk as too long."""

    seq: int | None = None
    overflowed: bool = False


def edge_of(start: TurnStart, record: Record, config: Config, *, recalled: str, answering: str) -> Edge:
    """`start`: with the window that was sent; `recalled`: the block that stood beside it; `answering`: as in `talk.history`."""
    chat = start.conversation
    refused = trimming.edge_of_left_out(start.history, record.refused, answering=answering) if record.refused else None
    profile = windows.profile_of(config, chat)
    room = profile.tokens
    if record.talk_room is not None and edge_jump.undone(chat) is None:  # what was recalled gives way to the talk, so it moves no edge (RS-70)
        free = record.talk_room + tokens.count(recalled)
        room = max(1, min(profile.tokens or free, free))
    edge = edge_after(
        replace(profile, tokens=room),
        message_sizes([*start.history, *start.questions]),
        model_window=windows.model_window(config, chat),
        floor_tokens=config.context.trim_floor_tokens,
    )
    if edge is None and refused is None:
        return Edge()
    # answers may stand after a question that came meanwhile: no question leaves before it was answered
    oldest = min(question.seq for question in start.questions)
    return Edge(seq=min(max(edge or 0, refused or 0), oldest - 1), overflowed=refused is not None)
