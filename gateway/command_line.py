"""Is this text a command? Pure; what a command does is in `commands.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from channels.message import visible

_NAME = re.compile(r"(?P<name>[^\W_][\w-]{0,31})(?:@(?P<bot>\S+))?(?:\s+(?P<rest>.*))?$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """`/name rest` as written. `bot` is set when the command names a bot that the adapter did not know as us."""

    prefix: str
    name: str
    rest: str = ""
    bot: str = ""

    @property
    def words(self) -> list[str]:
        return self.rest.split()


def parse(text: str, prefixes: Sequence[str]) -> CommandLine | None:
    """The command in `text`, or None for plain talk. Zero-width characters do not count (WD-116); a path such as /etc/hosts is no command."""
    seen = visible(text).strip()
    for prefix in prefixes:
        if seen.startswith(prefix):
            match = _NAME.match(seen[len(prefix) :])
            if match and not (match["rest"] is None and "/" in seen[len(prefix) :]):
                return CommandLine(prefix=prefix, name=match["name"].lower(), rest=(match["rest"] or "").strip(), bot=match["bot"] or "")
    return None
