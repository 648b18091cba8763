"""What a channel's history tells: messages that came while nobody listened (CH-190), and whether a message of ours arrived (CH-80)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

import discord
from discord.http import HTTPClient

from channels.discord.convert import fields_of

MISSED_MAX = 50  # messages of one conversation that are taken up again
PAGE = 100
PAGES = 5
SLACK = timedelta(seconds=5)  # their clock and ours

RawMessage: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Missed:
    """`messages` to take up, oldest first; `left` counts those that are too old or too many, `more` says that there are others beyond."""

    messages: tuple[RawMessage, ...] = ()
    left: int = 0
    more: bool = False


async def missed(http: HTTPClient, channel_id: str, *, after: str, since: datetime, me: str) -> Missed:
    """What others wrote in a channel after the message `after`: at most 50, none from before `since`. Raises the library's errors."""
    found: list[RawMessage] = []
    at = after
    for _ in range(PAGES):
        page = await _page(http, channel_id, after=at)
        found += page
        if len(page) < PAGE:
            return choose(found, since=since, me=me)
        at = str(page[-1]["id"])
    return choose([*found, *await _page(http, channel_id)], since=since, me=me, more=True)


def choose(found: Sequence[RawMessage], *, since: datetime, me: str, more: bool = False) -> Missed:
    """The newest of what was found, oldest first; none twice, none of ours. Pure."""
    others = {int(str(raw["id"])): raw for raw in found if str(fields_of(raw.get("author")).get("id")) != me}
    young = [number for number in sorted(others) if number >= discord.utils.time_snowflake(since)]
    kept = young[-MISSED_MAX:]
    return Missed(tuple(others[number] for number in kept), len(others) - len(kept), more)


async def sent(http: HTTPClient, channel_id: str, text: str, *, since: datetime, me: str) -> str:
    """The id of our own message with these words, sent at or after `since`; empty when there is none. Raises the library's errors."""
    at = str(discord.utils.time_snowflake(since - SLACK))
    for _ in range(PAGES):
        page = await _page(http, channel_id, after=at)
        for raw in page:
            if str(fields_of(raw.get("author")).get("id")) == me and str(raw.get("content", "")).strip() == text.strip():
                return str(raw["id"])
        if len(page) < PAGE:
            break
        at = str(page[-1]["id"])
    return ""


async def _page(http: HTTPClient, channel_id: str, *, after: str = "") -> list[RawMessage]:
    """Messages behind `after`, or the newest; oldest first."""
    answer: Any = await http.logs_from(int(channel_id), PAGE, after=int(after) if after else None)
    rows = [row for row in cast("list[RawMessage]", answer) if isinstance(row.get("id"), str | int)] if isinstance(answer, list) else []
    return sorted(rows, key=lambda row: int(str(row["id"])))
