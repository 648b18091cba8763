"""What a summary request of a chat shows, and what of its answer is kept (RS-55, RS-61, RS-163, RS-168). Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any, cast
from zoneinfo import ZoneInfo

import regex  # pyright: ignore[reportMissingTypeStubs]  (the package ships none)

from memory import tokens
from memory.extract import shortened
from memory.lenient_json import object_in
from memory.markdown_lines import one_line
from memory.recall.chunks import Spoken
from memory.recall.summary_rows import Detail
from memory.secret_patterns import find_secret

PIECE = 8_000  # tokens of talk in one request
FAN_IN = 8  # answers that become one
TITLE_MAX = 120  # characters
_KINDS = frozenset({"promise", "plan", "question", "fact", "event"})
_RESOLVED = frozenset({"resolved", "done", "closed", "kept"})
_GRAPHEME = cast("re.Pattern[str]", regex.compile(r"\X"))  # pyright: ignore[reportUnknownMemberType]  (the package has no types)


class InvalidOutput(Exception):
    """The model's answer cannot be read as a summary, after asking twice: trying again cannot help (RS-168, RS-192)."""

    code = "invalid_output"
    permanent = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A summary as the model gave it. `title`: of those that are asked for one."""

    text: str
    details: tuple[Detail, ...] = ()
    title: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "details": [asdict(each) for each in self.details], "title": self.title}

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> Answer:
        return Answer(text=value["text"], details=tuple(Detail(**each) for each in value["details"]), title=value.get("title", ""))

    @property
    def shown(self) -> str:
        """As a request shows it to the model that joins several."""
        return "\n".join([self.text, *map(_line, self.details)])


# -- the request -----------------------------------------------------------------------------------------------------------


def rendered(talk: Sequence[Spoken], authors: Mapping[int, str], zone: ZoneInfo) -> list[str]:
    """One entry for each message: `[2026-03-08 Sunday 14:05] Ana: …`. People with one name are told apart by their ids."""
    ids: dict[str, set[str]] = defaultdict(set)
    for message in talk:
        ids[message.speaker].add(authors.get(message.seq, ""))
    found: list[str] = []
    for message in talk:
        who = authors.get(message.seq, "")
        name = one_line(message.speaker) or ("person" if who else "assistant")
        label = f"{name} ({who})" if who and len(ids[message.speaker] - {""}) > 1 else name
        text = "\n  ".join(message.text.splitlines())
        found.append(f"[{message.at.astimezone(zone):%Y-%m-%d %A %H:%M}] {label}: {text}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Entries that one request shows; `first`, `last`: their places among all. More entries behind the last piece change that piece alone."""

    text: str
    first: int
    last: int


def pieces(entries: Sequence[str], room: int = PIECE) -> list[Piece]:
    """The entries in order, cut between them into pieces of at most `room` tokens; one entry that is longer is cut inside. Nothing is left out."""
    found: list[list[tuple[int, str]]] = []
    left = 0
    for at, entry in ((at, part) for at, each in enumerate(entries) for part in _slices(each, room)):
        cost = tokens.count(entry) + 1
        if not found or cost > left:
            found.append([])
            left = room
        found[-1].append((at, entry))
        left -= cost
    return [Piece(text="\n".join(entry for _, entry in piece), first=piece[0][0], last=piece[-1][0]) for piece in found]


def groups(count: int) -> list[tuple[int, int]]:
    """How `count` answers are joined: the fewest groups of at most FAN_IN, as even as can be, as begin and end."""
    many = -(-count // FAN_IN)
    return [(count * n // many, count * (n + 1) // many) for n in range(many)]


def all_details(merged: Answer, inputs: Sequence[Answer]) -> Answer:
    """The joined answer with every detail of its inputs, in the newest state: joining the pieces of one day loses none (RS-163)."""
    kept: dict[str, Detail] = {}
    for detail in (*(detail for each in inputs for detail in each.details), *merged.details):
        kept[detail.sense] = detail
    return replace(merged, details=tuple(kept.values()))


# -- the answer ------------------------------------------------------------------------------------------------------------


def parsed(answer: str) -> Answer | None:
    """What a model answered, read leniently: words and a fence around the object, commas too many, missing details. None for what is no summary.

    Details with a secret are left out; a text with one is no summary (WD-22).
    """
    value = object_in(answer) or {}
    text = value.get("text") or value.get("summary")
    if not isinstance(text, str) or not text.strip() or find_secret(text) is not None:
        return None
    listed: Any = value.get("details")
    items = cast("list[Any]", listed) if isinstance(listed, list) else []
    details = [found for item in items if (found := _detail(item)) is not None]
    title = value.get("title")
    name = shortened(one_line(title), TITLE_MAX) if isinstance(title, str) and find_secret(title) is None else ""
    return Answer(text=text.strip(), details=tuple(details), title=name)


def _detail(item: object) -> Detail | None:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, dict):
        return None
    given = {str(key): str(value).strip() for key, value in cast("dict[Any, Any]", item).items() if value is not None}
    text = one_line(given.get("text", ""))
    if not text or find_secret(text) is not None:
        return None
    kind, state = given.get("kind", "").casefold(), given.get("state", "").casefold()
    return Detail(
        text=text, kind=kind if kind in _KINDS else "fact", state="resolved" if state in _RESOLVED else "open", due=_date(given.get("due", ""))
    )


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""


def _line(detail: Detail) -> str:
    due = f", due {detail.due}" if detail.due else ""
    return f"- {detail.kind} ({detail.state}{due}): {detail.text}"


def _slices(text: str, room: int) -> list[str]:
    """`text` in parts of at most `room` tokens, cut at a blank near the middle where there is one."""
    if tokens.count(text) <= room or len(text) < 2:
        return [text]
    half = len(text) // 2
    blank = max(text.rfind(" ", 0, half), text.rfind("\n", 0, half))
    at = blank + 1 if blank > len(text) // 4 else half
    at = _border(text, at)
    return [*_slices(text[:at], room), *_slices(text[at:], room)] if at < len(text) else [text]


def _border(text: str, at: int) -> int:
    """The first place from `at` on where no grapheme is cut (RS-171)."""
    return next((found.end() for found in _GRAPHEME.finditer(text) if found.end() >= at), len(text))
