"""Slash commands, checked before they are registered: one bad name would have the server refuse all of them (CH-189)."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from typing import Any

from channels.discord.settings import SlashCommand

COMMANDS_MAX = 100
NAME_MAX = 32
DESCRIPTION_MAX = 100
OPTION = "text"  # everything behind the name, as it would be typed
_STRING = 3


def checked(commands: Sequence[SlashCommand]) -> tuple[tuple[SlashCommand, ...], tuple[str, ...]]:
    """The commands that can be registered, in their order, and a line for each that is left out. The first 100 stay."""
    kept: dict[str, SlashCommand] = {}
    lines: list[str] = []
    for command in commands:
        if not is_name(command.name):
            lines.append(f"/{command.name} is left out: a name has 1 to 32 lower-case letters, digits, - and _")
        elif not command.description.strip():
            lines.append(f"/{command.name} is left out: it has no description")
        elif command.name in kept:
            lines.append(f"/{command.name} is left out: it is there already")
        elif len(kept) == COMMANDS_MAX:
            lines.append(f"/{command.name} is left out: Discord takes {COMMANDS_MAX} commands; written as a message it works")
        else:
            kept[command.name] = command
    return tuple(kept.values()), tuple(lines)


def is_name(name: str) -> bool:
    fits = 0 < len(name) <= NAME_MAX and name == name.lower()
    return fits and all(character in "-_" or unicodedata.category(character)[0] in "LN" for character in name)


def payload(commands: Sequence[SlashCommand]) -> list[dict[str, Any]]:
    """The body of the call that replaces all registered commands. Each takes one text, as if it were typed."""
    return [
        {
            "name": command.name,
            "type": 1,
            "description": _short(command.description),
            "description_localizations": {tag: _short(text) for tag, text in command.localized.items()} or None,
            "options": [{"type": _STRING, "name": OPTION, "description": "…", "required": False}],
        }
        for command in commands
    ]


def fingerprint(body: Sequence[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _short(text: str) -> str:
    return " ".join(text.split())[:DESCRIPTION_MAX]
