"""`.scope.json` beside a scope's files (WD-3): what the folder is called for people, for its own name says nothing. Hidden from every tool.

It is written once and read by people alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

NAME = ".scope.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCard:
    """`label`: what people call the person or place; `platform`: where it was met first; `timezone`: an IANA name, empty for none of its own."""

    label: str = ""
    platform: str = ""
    timezone: str = ""

    def dump(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2).encode() + b"\n"
