"""The part of the configuration about recall and summaries (section 8 of their rules). A character or a chat may have its own values of some."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.types import RESTART, Section, Zone

CEILING_LEAST = 1_024  # tokens; with less no prompt is of use


class Context(Section):
    trim_floor_tokens: int = Field(
        default=0, ge=0, description="Up to so many tokens the turn limit leaves a chat alone, five times the limit apart; 0 lets it act always."
    )
    ceiling: int = Field(default=65_000, ge=CEILING_LEAST, le=10_000_000, description="Largest estimated prompt in tokens.")
    memory_budget: int = Field(default=6_500, ge=64, le=131_072, description="Tokens that summaries and recall may take of it; below the ceiling.")
    standing_share_percent: int = Field(default=70, ge=10, le=100, description="Share of the memory budget at which standing summaries aim.")
    memory_overrun: int = Field(default=2_000, ge=0, le=10_000, description="Tokens by which memory may pass its budget, never the ceiling.")


class Profile(Section):
    """A window profile of the operator's own (RS-2); what it lacks is as in no other: no limit, nothing summarised."""

    turns: int = Field(default=0, ge=0, le=500, description="Turns that are sent word for word; 0 is no limit.")
    messages: int = Field(default=0, ge=0, le=500, description="Messages that are sent word for word; 0 is no limit.")
    tokens: int = Field(default=0, ge=0, le=1_000_000, description="Tokens that these may take; 0 is no limit.")
    context_share: float = Field(default=0, ge=0, le=0.9, description="Share of the model's window that these may take; 0 is no limit.")
    drop: Literal["oldest_half", "block"] = Field(
        default="oldest_half", description="What leaves when a limit is passed: the older half of the turns, or a block of messages."
    )
    block: int = Field(default=10, ge=1, le=25, description="Messages that leave together, where blocks do.")
    block_share: float = Field(default=0.2, ge=0.05, le=1, description="Share of the token limit from which fewer messages make a block.")
    days: bool = Field(default=False, description="Whether today and the days without a summary are sent instead, without the limits above.")
    sent: Literal["blocks", "rolling", "calendar"] = Field(
        default="blocks", description="Summaries that stand for what is not sent: of turns that left, rolling ones, or those of days and weeks."
    )
    stored: Literal["", "rolling", "calendar"] = Field(default="", description="Summaries that are made beside those that are sent.")


class Companion(Section):
    messages: int = Field(default=50, ge=5, le=500, description="Messages of a companion's chat that are sent word for word.")
    tokens: int = Field(default=10_000, ge=500, le=200_000, description="Tokens that these may take.")
    context_share: float = Field(default=0.25, ge=0.05, le=0.9, description="Share of the model's window that these may take.")
    block: int = Field(default=10, ge=1, le=25, description="Messages that leave together when a limit is passed.")


class Days(Section):
    rollover_hour: int = Field(default=4, ge=0, le=11, description="Local hour at which a new day of a chat begins.")
    zone: Zone = Field(default="", description="Zone of these days; empty is that of the chat's memory.")
    tail: int = Field(default=10, ge=0, le=5000, description="Messages of earlier, summarised days that are still sent word for word.")
    backfill_days: int = Field(default=14, ge=1, le=60, description="Days that one backfill does, the newest first.")
    idle_minutes: int = Field(default=15, ge=1, le=240, description="Minutes of silence after which a finished day is summarised.")
    latest_hours: int = Field(default=3, ge=0, le=12, description="Hours after the rollover at which it is summarised in spite of talk.")
    stale_delay_minutes: int = Field(
        default=10, ge=0, le=1_440, description="Minutes after the last change until a summary of changed talk is made anew."
    )
    remember_tokens: int = Field(default=1_000, ge=0, le=20_000, description="Tokens that key details of the sent summaries may take.")


class Chunk(Section):
    gap_hours: int = Field(default=6, ge=0, le=72, description="Silence in hours that splits the vector of a chunk; 0 never does.")


class Recall(Section):
    enabled: Literal["auto", "on", "off"] = Field(
        default="auto", description="Whether old passages are recalled; auto: as the kind of chat says. A chat may have its own switch."
    )
    record: Literal["full", "recall_only", "none"] = Field(
        default="full", description="What is kept for recall; the stricter of this and the chat's wins."
    )
    block_tokens_min: int = Field(default=384, ge=0, le=8_192, description="Tokens that recalled passages may take at least.")
    block_tokens_max: int = Field(default=1_536, ge=0, le=8_192, description="Tokens that recalled passages may take at most.")
    time_limit_s: float = Field(default=1.5, ge=0.3, le=5, description="Seconds that a reply waits for what is recalled.")
    name_weight: float = Field(default=8, ge=1, le=20, description="How much more a name weighs than another word.")
    floor_percentile: float = Field(
        default=97, ge=50, le=99.9, description="How near a passage must come: above so many percent of what unrelated messages reach."
    )
    text_floor_percent: int = Field(
        default=55, ge=5, le=80, description="Share of a message's rare words that a passage must hold to count by words."
    )


class Entries(Section):
    last_n: int = Field(default=50, ge=5, le=500, description="Messages that a summary asked for by hand covers.")
    automatic: bool = Field(default=False, description="Whether summaries are made by themselves.")
    every: int = Field(default=5, ge=1, le=200, description="A person's messages from one automatic summary to the next.")
    max_output: int = Field(default=4_096, ge=1, le=32_768, description="Longest answer of the summary model in tokens.")
    hide: bool = Field(default=False, description="Whether summarised messages leave the prompt.")
    tail: int = Field(default=10, ge=0, le=5000, description="Summarised messages that stay in it then.")
    review: bool = Field(default=False, description="Whether summaries by the model wait for a person's yes.")
    model: str = Field(
        default="", description="Model account that writes them: an id of `models`; empty is that of `summary.model`, `helper_model`, the chat's."
    )


class Inspector(Section):
    """What was sent to a model for a reply, to be looked at for a while (docs/decisions/0015). Nothing of it is stored."""

    replies: int = Field(default=3, ge=0, le=20, description="Replies of each chat whose prompts are kept in memory to be looked at; 0 keeps none.")
    minutes: int = Field(default=60, ge=1, le=1_440, description="Minutes after which such a prompt is let go.")
    role: Literal["user", "admin", "owner"] = Field(
        default="admin", description="Whose own chats show them, from this role on; a prompt holds the words of the characters and of system.md."
    )


class Receipts(Section):
    keep: Annotated[int, RESTART] = Field(default=200, ge=20, le=5_000, description="Receipts that are kept of each chat.")
