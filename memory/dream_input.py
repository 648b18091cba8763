"""What a dream reads: its lines of MEMORY.md, the fixed lines of people, what is known about the person, the chosen days (WD-62, WD-65). Pure.

Everything comes from the live files at this moment and the rows about their lines; diaries, recalled text and backups have no way in (WD-66).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memory.lines import Entry, entries, id_length
from memory.markdown_lines import plain
from memory.provenance import LineRow, Origin

RULES = "1"
"""Version of prompt and checks: another one makes every batch new (WD-86)."""

DATES_MAX = 30
LINE_SHOWN = 2_000  # characters of one line that a model gets to see
ABOUT_SHOWN = 8_000  # characters of user.md or space.md
_LINE_TOKENS = 30  # id, origin and braces around each line


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLine:
    """A program's line of MEMORY.md."""

    text: str
    hash: str
    section: str
    row: LineRow


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLine:
    """A line of a daily file. `where`: the heading above it; `used`: a dream has taken it in before."""

    text: str
    hash: str
    date: date
    origin: Origin
    where: str = ""
    sources: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    used: bool = False
    row: LineRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A chosen date; without lines it is named as empty."""

    date: date
    lines: tuple[DayLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that one model request may rest on. `fixed`: lines of people in MEMORY.md; `about`: user.md or space.md; `names`: people's, by id."""

    old: tuple[OldLine, ...]
    fixed: tuple[Entry, ...]
    about_name: str
    about: str
    days: tuple[Day, ...]
    names: Mapping[str, str]

    @property
    def ids(self) -> Mapping[str, str]:
        """The id of every line by its hash: the start of the hash, as long as needed to tell all of them apart (WD-5)."""
        hashes = {line.hash for line in (*self.old, *self.fixed, *self.day_lines)}
        length = id_length(hashes)
        return {each: each[:length] for each in hashes}

    @property
    def day_lines(self) -> tuple[DayLine, ...]:
        return tuple(line for day in self.days for line in day.lines)


def curated(text: str, known: Mapping[str, LineRow]) -> tuple[tuple[OldLine, ...], tuple[Entry, ...]]:
    """The lines of MEMORY.md, each once: the program's, and those of people."""
    ordered = list({entry.hash: entry for entry in entries(text)}.values())
    old = tuple(
        OldLine(text=entry.text, hash=entry.hash, section=entry.section, row=known[entry.hash]) for entry in ordered if entry.hash in known
    )
    return old, tuple(entry for entry in ordered if entry.hash not in known)


def day(on: date, text: str, known: Mapping[str, LineRow], used_human: Iterable[str] = (), *, imported: bool = False) -> Day:
    """A daily file. A line without a row is a human's; in a folder of CowAgent's used in place it is `imported`, and counts as used (WD-28)."""
    used = set(used_human)
    lines: dict[str, DayLine] = {}
    for entry in entries(text):
        row = known.get(entry.hash)
        origin = row.origin if row else Origin.IMPORTED if imported else Origin.HUMAN
        lines.setdefault(
            entry.hash,
            DayLine(
                text=entry.text,
                hash=entry.hash,
                date=on,
                origin=origin,
                where=entry.section,
                sources=row.sources if row else (),
                speakers=row.speakers if row else (),
                used=origin is Origin.IMPORTED or (bool(row.used_by) if row else entry.hash in used),
                row=row,
            ),
        )
    return Day(date=on, lines=tuple(lines.values()))


def unused(days: Iterable[Day], today: date) -> tuple[Day, ...]:
    """Of the night: each date up to `today` with lines that no dream has used, oldest first, at most DATES_MAX; of each only these lines (WD-62)."""
    found = (Day(date=each.date, lines=tuple(line for line in each.lines if not line.used)) for each in days if each.date <= today)
    return tuple(sorted((each for each in found if each.lines), key=lambda each: each.date))[:DATES_MAX]


def part(days: Sequence[Day], tokens: int, count: Callable[[str], int]) -> tuple[Day, ...]:
    """As many days, oldest first, as have room in `tokens`; of a first day that is too large, as many of its lines (WD-87). The rest waits."""
    taken: list[Day] = []
    left = tokens
    for each in days:
        lines: list[DayLine] = []
        for line in each.lines:
            cost = count(_cut(line.text, LINE_SHOWN)) + count(line.where) + _LINE_TOKENS
            if cost > left:
                break
            lines.append(line)
            left -= cost
        if len(lines) == len(each.lines):
            taken.append(each)
            continue
        if lines and not taken:
            taken.append(Day(date=each.date, lines=tuple(lines)))
        break
    return tuple(taken)


def batch_key(scope: str, days: Iterable[Day]) -> str:
    """What a batch is known by: the same lines of the same dates under the same rules (WD-86). MEMORY.md is not part of it."""
    batch = [RULES, scope, [[each.date.isoformat(), [line.hash for line in each.lines]] for each in days if each.lines]]
    return hashlib.sha256(json.dumps(batch).encode()).hexdigest()


def render(material: Material, *, room: int, add_only: bool) -> str:
    """The request's user message: headings of ours, and each line as JSON, so that no line can pass for a heading or another line."""
    ids = material.ids
    parts = [f"Room for new lines: {room}", *(["Only add this time: keep every old line as it is, drop none."] if add_only else [])]
    old = (_json(id=ids[line.hash], section=line.section, text=line.text) for line in material.old)
    parts.append("\n".join(["MEMORY.md, your own lines:", *old]))
    if material.fixed:
        fixed = (_json(id=ids[entry.hash], text=_cut(entry.text, LINE_SHOWN)) for entry in material.fixed)
        parts.append("\n".join(["MEMORY.md, lines by people (fixed, never in your answer):", *fixed]))
    if about := plain(material.about):
        parts.append(f"{material.about_name} (read only, do not repeat it):\n{_json(text=_cut(about, ABOUT_SHOWN))}")
    for each in material.days:
        shown = (_shown(line, ids[line.hash], material.names) for line in each.lines)
        parts.append("\n".join([f"{each.date.isoformat()}:" if each.lines else f"{each.date.isoformat()}: nothing written", *shown]))
    return "\n\n".join(parts)


def _shown(line: DayLine, id_: str, names: Mapping[str, str]) -> str:
    by = ", ".join(names[speaker] for speaker in line.speakers if speaker in names)
    return _json(id=id_, origin=str(line.origin), where=line.where, by=by, text=_cut(line.text, LINE_SHOWN))


def _json(**values: str) -> str:
    return json.dumps({name: value for name, value in values.items() if value or name == "text"}, ensure_ascii=False)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"
