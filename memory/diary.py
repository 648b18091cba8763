"""What a dream did, and the section of its diary that tells it (WD-77). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from memory.dream_rules import Dropped, Judged, LeftOut, Taken
from memory.secret_patterns import find_secret

_LINE_MAX = 3_900  # characters of a line of the diary; the workspace takes 4,000
_SHOWN_MAX = 300  # of a line of memory in it

Kind = Literal["added", "changed", "merged", "dropped", "candidate", "left_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One item of a dream's list. `reason`: of a drop or of what was left out; `old`: the lines before; hashes for finding it again."""

    kind: Kind
    text: str
    old: tuple[str, ...] = ()
    reason: str = ""
    hashes: tuple[str, ...] = ()


def happened(judged: Judged) -> tuple[Happened, ...]:
    """The exact list of what a dream did (WD-77)."""
    return (*map(_taken, judged.taken), *map(_dropped, judged.dropped), *map(_candidate, judged.candidates), *map(_left_out, judged.left_out))


def numbers(changes: Iterable[Happened]) -> dict[str, int]:
    """How many lines a dream added, changed (merged ones too) and dropped, and how many wait for a yes."""
    kinds = [each.kind for each in changes]
    return {
        "added": kinds.count("added"),
        "changed": kinds.count("changed") + kinds.count("merged"),
        "dropped": kinds.count("dropped"),
        "candidates": kinds.count("candidate"),
    }


def diary_title(day: str) -> str:
    return f"# Dream Diary: {day}"


def diary_section(time: str, narrative: str, list_: Iterable[Happened], words: Mapping[str, str]) -> str:
    """One dream's section: the narrative, then the list. `words`: titles of the kinds and reasons in the language of the file.

    Nothing of ours stands in it but the time. What looks like a secret is left out, and a line that would begin a heading begins none.
    """
    told = "\n".join(_plain(line) for line in narrative.strip().split("\n"))
    parts = [f"## {time}", *([told] if told.strip() and not find_secret(told) else [])]
    by_kind: dict[str, list[str]] = {}
    for item in list_:
        by_kind.setdefault(item.kind, []).append(_item(item, words))
    parts += ["\n".join([f"{words[kind]}:", *lines]) for kind, lines in by_kind.items()]
    return "\n\n".join(parts)


def _item(item: Happened, words: Mapping[str, str]) -> str:
    reason = f" ({words[item.reason]})" if item.reason else ""
    shown = " / ".join(_short(old) for old in item.old)
    line = f"- {shown} → {_short(item.text)}{reason}" if shown else f"- {_short(item.text)}{reason}"
    return f"- {words['kept_out']}{reason}" if find_secret(line) or not item.text else line


def _plain(line: str) -> str:
    return line.lstrip("# ")[:_LINE_MAX] if line.lstrip().startswith("#") else line[:_LINE_MAX]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_MAX else f"{line[:_SHOWN_MAX]} …"


def _taken(line: Taken) -> Happened:
    kind: Kind = "added" if not line.replaces else "merged" if len(line.replaces) > 1 else "changed"
    old = tuple(each.text for each in line.replaces)
    return Happened(kind=kind, text=line.text, old=old, hashes=(line.hash, *(each.hash for each in line.replaces)))


def _dropped(drop: Dropped) -> Happened:
    return Happened(kind="dropped", text=drop.line.text, reason=drop.reason, hashes=(drop.line.hash,))


def _candidate(line: Taken) -> Happened:
    return Happened(kind="candidate", text=line.text, hashes=(line.hash,))


def _left_out(out: LeftOut) -> Happened:
    return Happened(kind="left_out", text=out.text, reason=str(out.why))
