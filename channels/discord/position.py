"""Where we are in each conversation, as it is stored with the events: the newest message seen (CH-190)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

KNOWN_MAX = 200  # conversations; the ones that were silent for longest go first


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A channel, thread or direct chat. `guild_id` is empty in a direct chat, `parent_id` unless it is a thread that others may find.

    `is_open`: all members of the server read it. `guild_name`, `parent_name` and `name`: what it is called, empty where nobody says. These may change
    at any time and are not stored.
    """

    channel_id: str
    guild_id: str = ""
    parent_id: str = ""
    is_open: bool = False
    guild_name: str = ""
    parent_name: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """The newest message of each known conversation, oldest news first. A frozen value: each change is a new one."""

    seen: Mapping[str, tuple[Place, str]] = field(default_factory=dict[str, tuple[Place, str]])

    def __str__(self) -> str:
        rows = {channel: [newest, place.guild_id, place.parent_id] for channel, (place, newest) in self.seen.items()}
        return json.dumps(rows, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str`. What cannot be read is no position."""
        try:
            rows: object = json.loads(text or "{}")
        except ValueError:
            return cls()
        found: dict[str, tuple[Place, str]] = {}
        for channel, row in cast("Mapping[str, object]", rows).items() if isinstance(rows, dict) else ():
            match row:
                case [str(newest), str(guild), str(parent)] if newest.isdigit():
                    found[channel] = (Place(channel_id=channel, guild_id=guild, parent_id=parent), newest)
                case _:
                    pass
        return cls(found)

    def place(self, channel_id: str) -> Place | None:
        known = self.seen.get(channel_id)
        return known[0] if known else None

    def after(self, place: Place, message_id: str, *, speaks: bool) -> Position:
        """Past this message. `speaks`: it makes the conversation known, as somebody spoke to us there or we did."""
        known = self.seen.get(place.channel_id)
        if known is None and not speaks:
            return self
        newest = message_id if known is None or int(message_id) > int(known[1]) else known[1]
        rest = {channel: row for channel, row in self.seen.items() if channel != place.channel_id}
        kept = list(rest.items())[-(KNOWN_MAX - 1) :]
        return replace(self, seen={**dict(kept), place.channel_id: (place, newest)})

    def without(self, channel_id: str) -> Position:
        return replace(self, seen={channel: row for channel, row in self.seen.items() if channel != channel_id})
