"""The part of the configuration that is about saved memories (3.4 of their rules), and the one switch of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from gateway.config.types import Section, Wants
from memory.saved.text_limit import CONTENT_MAX

DECAY_VARIABLE = "MEMORY_DECAY_ENABLED"
_SWITCH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

Floor: TypeAlias = Annotated[
    Literal["auto"] | Mapping[str, Annotated[float, Field(ge=-1, le=1)]],
    Wants('"auto", or an object with one number from -1 to 1 for each embedder, by its name'),
]


class Saved(Section):
    ageing: bool = Field(default=True, description=f"Whether unused memories fall asleep; the environment's {DECAY_VARIABLE} goes before it.")
    unpinned_max: int = Field(default=100, ge=1, le=1000, description="Unpinned memories that one list holds.")
    pinned_max: int = Field(default=20, ge=0, le=200, description="Pinned memories that one list holds beside them.")
    content_max: int = Field(default=CONTENT_MAX, ge=20, le=CONTENT_MAX, description="Longest memory in characters.")
    dormant_after_days: int = Field(default=7, ge=1, le=365, description="Days of talk without a match after which a memory falls asleep.")
    recent_days: int = Field(default=7, ge=0, le=365, description="Days for which a changed memory is marked as recent.")
    matches_max: int = Field(default=3, ge=1, le=20, description="Memories that one message can match.")
    participants_max: int = Field(default=8, ge=1, le=100, description="People of a shared place whose memories count at a time.")
    query_min_chars: int = Field(default=3, ge=1, le=100, description="Shortest message that is searched with.")
    query_min_chars_cjk: int = Field(default=2, ge=1, le=100, description="The same for a message with a Chinese, Japanese or Korean character.")
    query_max_chars: int = Field(default=1000, ge=20, le=20_000, description="Characters of a message that are searched with.")
    match_floor: Floor = Field(
        default="auto", description="How near a memory must come to match: as measured, or a number of your own for an embedder that you name."
    )
    match_floor_percentile: float = Field(default=60, ge=1, le=99.9, description="How strict the measured floor is; less means that more matches.")
    tags_max: int = Field(default=5, ge=0, le=50, description="Word tags of one memory.")
    tool_ops_max: int = Field(default=10, ge=1, le=100, description="Memories that the model may change in one turn.")
    deep_ops_max: int = Field(default=5, ge=1, le=50, description="Memories that one run of deep memory may change.")
    deep_min_messages: int = Field(default=20, ge=1, le=1000, description="New messages of a chat from which deep memory reads it.")
    generate_drafts_max: int = Field(default=20, ge=1, le=100, description="Drafts that are made of one description.")
    from_chat_drafts_max: int = Field(default=5, ge=1, le=20, description="Drafts that are made of picked messages.")
    journal_days: int = Field(default=30, ge=1, le=3650, description="Days for which a change by the model can be undone.")


def decay_switch(env: Mapping[str, str]) -> bool | None:
    """What the environment says of ageing, None for nothing; an empty variable is what container tools pass for an unset one. ValueError for a word
    that means neither (SM-97)."""
    text = env.get(DECAY_VARIABLE, "").strip()
    if not text:
        return None
    if text.lower() not in _SWITCH:
        raise ValueError(f"{DECAY_VARIABLE} is neither on nor off")
    return _SWITCH[text.lower()]
