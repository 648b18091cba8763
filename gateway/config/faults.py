"""What a reading of the configuration comes to, and the words for what was found in it."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from gateway.config import Config
from gateway.config.checks import Severity
from gateway.config.types import hide_login
from gateway.config.walk import Spot
from gateway.jsonfile import Json
from gateway.jsontext import veil


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing to repair. `path` is the key ("channels.web.port", "" for the file); `line` and `column` count from 1 and are 0 when unknown.

    `section` is as in `changed_sections`, "" when the file as a whole is meant. `fails_check`: `check` ends with an error because of it, which
    holds for every error and every unknown key. `excerpt` is the line with a mark below it. No field ever holds a secret.
    """

    file: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""
    severity: Severity = "error"
    section: str = ""
    fails_check: bool = True
    excerpt: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        key = f"{self.path}: " if self.path else ""
        return f"{place}: {self.severity}: {key}{self.message}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a file came to. `config` is None when it cannot be used at all; `disabled` names the channels ("telegram") that do not run although
    the file may say so: in `config` their `enabled` is false. A running gateway takes a new configuration only when `accepted`."""

    file: Path
    config: Config | None
    faults: tuple[Fault, ...]
    disabled: frozenset[str] = frozenset()

    @property
    def errors(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.severity == "error")

    @property
    def warnings(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.severity == "warning")

    @property
    def accepted(self) -> bool:
        """Whether a running gateway may change over to it: nothing in it is an error (WO-31)."""
        return self.config is not None and not self.errors

    @property
    def check_failed(self) -> bool:
        return any(fault.fails_check for fault in self.faults)


def found(value: Json, spot: Spot) -> str:
    """A value in words, as it follows "found"; secrets stay covered."""
    match value:
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return "a number" if spot.is_secret or len(str(value)) > 40 else f"the number {value}"
        case str():
            shown = "" if spot.is_secret else veil(hide_login(value))
            return f'the text "{shown if len(shown) <= 60 else shown[:57] + "…"}"' if shown or not value else "a text"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "an object in braces"


def slip(value: Json, spot: Spot) -> str:
    """What was probably meant instead of a value of the wrong type, "" without an idea."""
    match value:
        case str() if spot.is_list:
            return 'write it in brackets: ["…"]'
        case str() if re.fullmatch(r"-?[0-9.]+|true|false|null", value) and not spot.is_map:
            return f"write {value} without quotes"
        case str() if choices := re.findall(r'"([^"]+)"', spot.what()):
            near = difflib.get_close_matches(value.lower(), choices, 1)
            return f'did you mean "{near[0]}"?' if near else ""
        case int() | float() if not isinstance(value, bool) and re.match("an? (id|text|secret|host)", spot.what()):
            return "write it in double quotes"
        case _:
            return ""
