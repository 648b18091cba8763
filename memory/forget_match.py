"""What a wish to forget means: which lines, and which other texts hold them (WD-92). Pure; words of any language, whatever their case and width."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memory.lines import ID_LENGTH, Entry, entries, line_hash
from memory.markdown_lines import behind_front_matter, body, heading_of, lines_of

SHORTEST = 2  # characters of a wish
_ID = re.compile("[0-9a-f]{8,64}")
_TIMED = re.compile(r"### [0-9]{2}:[0-9]{2}(?= )")
_HELD = 200  # characters of a line by which another text is recognised as holding it: lists shorten long lines
_SURE = 6  # a line shorter than this must be the whole of another line, or `tea` would be found in every steak
_SIGNS = "\u0e00-\u0eff\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = re.compile(f"[{_SIGNS}]")
_STARTS = rf"(?<![^\W{_SIGNS}])"  # no letter before, or one of a script without spaces: 私はpythonが好き


def folded(text: str) -> str:
    """One width and case, single blanks, nothing that cannot be seen."""
    seen = "".join(sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return " ".join(seen.casefold().split())


@dataclass(frozen=True, slots=True)
class Wanted:
    """`words`: all must occur, in any order, each at the start of a word where the script has words; `id`: the start of a line's hash, or empty."""

    words: tuple[str, ...] = ()
    id: str = ""

    @classmethod
    def of(cls, text: str) -> Wanted | None:
        """What a person wrote; None when it is too short to mean anything."""
        plain = folded(text).lstrip("#")
        if _ID.fullmatch(plain):  # or a telephone number, or a word of ten letters a to f
            return cls(words=() if text.lstrip().startswith("#") else (plain,), id=plain)
        return cls(words=tuple(plain.split())) if len(plain) >= SHORTEST else None

    def in_text(self, text: str) -> bool:
        """Whether all the words occur in `text`."""
        plain = folded(text)
        return bool(self.words) and all(_occurs(word, plain) for word in self.words)

    def is_entry(self, entry: Entry) -> bool:
        return (bool(self.id) and entry.hash.startswith(self.id)) or self.in_text(entry.text)


@dataclass(frozen=True, slots=True)
class Held:
    """Recognises texts that hold what is forgotten: by the wish's words, or one of the lines themselves."""

    wanted: Wanted
    lines: tuple[str, ...] = ()
    hashes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, wanted: Wanted, lines: Iterable[str], hashes: Iterable[str]) -> Held:
        """`lines`: their words; `hashes`: of the lines, also of those that are gone already."""
        texts = {text: None for words in lines if (text := folded(words)[:_HELD].strip())}
        return cls(wanted, tuple(texts), frozenset(hashes))

    def in_line(self, line: str) -> bool:
        plain = folded(line)
        bare = plain.lstrip("-*+ ")
        return self.wanted.in_text(line) or any(text == bare or (len(text) >= _SURE and text in plain) for text in self.lines)

    def in_text(self, text: str) -> bool:
        """Whether a line or an entry of `text` holds it."""
        return any(map(self.in_line, text.splitlines())) or any(
            entry.hash in self.hashes or self.wanted.in_text(entry.text) for entry in entries(text)
        )

    def in_json(self, value: Any) -> bool:
        """Whether some text inside a JSON value holds it."""
        return any(map(self.in_text, _texts(value)))


def headings(text: str) -> tuple[Entry, ...]:
    """Headings and lines of a front matter: no entries of a memory, but they may say it all the same. `text` is the whole line."""
    lines = [body(line) for line in lines_of(text.removeprefix("\ufeff"))]
    inside = {number for entry in entries(text) for number in range(entry.first, entry.last + 1)}
    front = behind_front_matter(lines)
    found = [
        (number, line.strip())
        for number, line in enumerate(lines, start=1)
        if number not in inside and ((heading_of(line) and line.strip(" #")) or (number <= front and line.strip(" -.")))
    ]
    return tuple(Entry(text=line, hash=line_hash(line), id=line_hash(line)[:ID_LENGTH], first=at, last=at, section="") for at, line in found)


def without_headings(text: str, hashes: Collection[str]) -> str:
    """`text` without these headings; of one that names a time and a conversation (WD-4) the time stays, for lines stand below it."""
    gone = {entry.first for entry in headings(text) if entry.hash in hashes}
    lines = lines_of(text)
    return "".join(line if at not in gone else _only_time(line) for at, line in enumerate(lines, start=1))


def _only_time(line: str) -> str:
    found = _TIMED.match(line)
    return found[0] + line[len(body(line)) :] if found else ""


def without_lines(text: str, held: Held) -> str:
    """`text` without the lines that hold it."""
    return "".join(line for line in lines_of(text) if not held.in_line(line))


def redacted_diary(text: str, held: Held, removed: str) -> str:
    """A diary in which each section that tells of it says `removed` in place of its narrative, and lists only the rest (WD-92)."""
    sections: list[list[str]] = [[]]
    for line in lines_of(text):
        if line.startswith("## "):
            sections.append([])
        sections[-1].append(line)
    return "".join("".join(section if not _tells(section, held) else _redacted(section, held, removed)) for section in sections)


def _tells(section: Sequence[str], held: Held) -> bool:
    return bool(section) and held.in_text("".join(section))


def _redacted(section: Sequence[str], held: Held, removed: str) -> list[str]:
    end = section[0][len(body(section[0])) :] or "\n"
    head = [section[0]] if section[0].startswith("## ") else []
    groups: list[list[str]] = []
    for line in section[len(head) :]:
        if body(line).endswith((":", "：")):
            groups.append([line])
        elif groups and line.startswith("- ") and not held.in_line(line):
            groups[-1].append(line)
    kept = [line for group in groups if len(group) > 1 for line in (end, *group)]
    return [*head, *([end] if head else []), f"{removed}{end}", *kept, end]


def _occurs(word: str, plain: str) -> bool:
    if _SPACELESS.search(word):
        return word in plain
    return re.search(f"{_STARTS}{re.escape(word)}" if word[0].isalnum() else re.escape(word), plain) is not None


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast(Mapping[str, Any], value).values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in cast(Sequence[Any], value):
            yield from _texts(each)
