"""What a dream makes of the text of MEMORY.md. Pure, and byte for byte wherever the dream has nothing to say (WD-4, N7)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.dream_rules import Judged
from memory.lines import Entry, as_bullet, entries
from memory.markdown_lines import BOM, appended, body, heading_of, lines_of, newline_of, open_fence

_MARK = re.compile(r"([ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)(?=\S)")


class TextBroken(ValueError):
    """The new text would not say what the dream decided, or would touch a line that is not its own. It is not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A line to put in: in the place of the first of `replaces` that stands, else under the heading `section`, else at the end."""

    text: str
    section: str = ""
    replaces: tuple[str, ...] = ()


def rewrite(old: str, judged: Judged) -> str:
    """`old` with the changes of a dream. TextBroken when something else would change."""
    lines = [NewLine(text=line.text, section=line.section, replaces=tuple(each.hash for each in line.replaces)) for line in judged.taken]
    return edit(old, lines, [drop.line.hash for drop in judged.dropped])


def edit(old: str, lines: Sequence[NewLine], gone: Collection[str]) -> str:
    """`old` without the entries whose hashes are in `gone` or replaced, and with `lines`. Every other byte stays. TextBroken."""
    new = _edited(old, lines, set(gone))
    taken = {*gone, *(each for line in lines for each in line.replaces)}
    put = Counter(entries(as_bullet(line.text))[0].hash for line in lines)
    stays = [(entry.hash, entry.text) for entry in entries(old) if entry.hash not in taken]
    found = entries(new)
    if Counter(entry.hash for entry in found) != Counter(each for each, _ in stays) + put:
        raise TextBroken("the new text would not hold what was decided")
    kept = [(entry.hash, entry.text) for entry in found]
    at = -1
    for each in stays:  # in their order
        try:
            at = kept.index(each, at + 1)
        except ValueError:
            raise TextBroken("the new text would change a line that stays") from None
    return new


def _edited(old: str, lines: Sequence[NewLine], gone: set[str]) -> str:
    newline = newline_of(old)
    mark = BOM if old.startswith(BOM) else ""
    raw = lines_of(old.removeprefix(BOM))
    places = entries(old)
    out: dict[int, list[str]] = {}  # what is put in the place of a line, by its number from 1
    behind: dict[int, list[str]] = {}  # what is put below it
    later: list[NewLine] = []
    taken = gone | {each for line in lines for each in line.replaces}
    for line in lines:
        spot = next((entry for wanted in line.replaces for entry in places if entry.hash == wanted and entry.first not in out), None)
        if spot is not None:
            out[spot.first] = _as_lines(line.text, raw[spot.first - 1], newline)
        elif (under := _end_of_section(line.section, places, raw)) is not None:
            behind.setdefault(under, []).extend(_as_lines(line.text, "", newline))
        else:
            later.append(line)
    goes = {number: entry.first for entry in places if entry.hash in taken for number in range(entry.first, entry.last + 1)}
    text = ""
    for number, line in enumerate(raw, start=1):
        if number not in goes:
            text += line
        elif number == goes[number]:
            text += "".join(out.get(number, []))
        if number in behind:
            text += _ended(text, newline) + "".join(behind[number])
    for line in later:
        text = _at_end(text, line.text, newline)
    return mark + text


def _at_end(text: str, line: str, newline: str) -> str:
    """A line below everything: right behind a list that ends there, else after a blank line; before a code fence that nobody closed."""
    last = entries(text)[-1:]
    lines = lines_of(text)
    if last and open_fence(text):
        at = last[0].first - 1
        return _at_end("".join(lines[:at]), line, newline) + newline + "".join(lines[at:])
    if last and last[0].last == len(lines) and _MARK.match(lines[last[0].first - 1]):
        return text + _ended(text, newline) + "".join(_as_lines(line, "", newline))
    return appended(text, as_bullet(line))


def _as_lines(text: str, was: str, newline: str) -> list[str]:
    """The lines of an entry, each with its end; with the bullet and indentation that `was`, the line in its place, had."""
    lines = as_bullet(text).split("\n")
    if found := _MARK.match(was):
        indent = found[1][: len(found[1]) - len(found[1].lstrip())]
        lines = [found[1] + lines[0][2:], *(indent + line if line.strip() else line for line in lines[1:])]
    return [line + newline for line in lines]


def _ended(text: str, newline: str) -> str:
    """The line end that is missing behind `text`."""
    return "" if not text or text.endswith(("\n", "\r")) else newline


def _end_of_section(section: str, places: Sequence[Entry], raw: Sequence[str]) -> int | None:
    """The number of the line below which a new line of `section` goes: its last entry, else its heading; None when there is no such section."""
    if not section:
        return None
    inside = {number for entry in places for number in range(entry.first, entry.last + 1)}
    headings = [
        (number, found.words) for number, line in enumerate(raw, start=1) if number not in inside and (found := heading_of(body(line)))
    ]
    start = next((number for number, words in headings if words.casefold() == section.casefold()), None)
    if start is None:
        return None
    end = next((number for number, _ in headings if number > start), len(raw) + 1)
    return max((entry.last for entry in places if start < entry.first < end), default=start)
