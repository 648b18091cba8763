"""Whether a text says more than what it rests on: numbers in digits, links, addresses, handles and dates must be found there (WD-70). Pure.

The check for summaries (a bullet and its messages) and dreams (a line and its evidence). It reads the digits of every script and width, and dates in
English, Japanese and Chinese; a number may stand in the support as a word (three, 三匹), and a date may follow from when the support was said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from typing import NamedTuple

from memory.said_dates import NUMBER_WORDS, Reach, Said, agrees, follows, mentioned, named, reaches, with_digits

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]")  # m² is a unit, not the number 2
_ENDS = ".,;:!?)]}>\"'»”’」』】、。，！？；：）"

_ENDINGS = "com|org|net|io|dev|app|ai|co|me|info|edu|gov|eu|de|at|ch|fr|uk|jp|cn|tw|hk|kr|ru|us|xyz"
_LINK = re.compile(
    rf"(?:https?://|www\.)[^\s<>\"「」（）]+|(?<![a-z0-9@._-])(?:[a-z0-9-]+\.)+(?:{_ENDINGS})(?![a-z0-9.@-]{{0,64}}@)(?![a-z0-9])(?:/[!-~]*)?"
)
_MAIL = re.compile(r"[a-z0-9][a-z0-9._%+-]{0,63}@[a-z0-9-]+(?:\.[a-z0-9-]+)+")  # 64 octets at most (RFC 5321): without a limit, looking is quadratic
_HANDLE = re.compile(r"(?<![a-z0-9@.])@[a-z0-9_][a-z0-9_.-]{1,}")
_NAMES = (_MAIL, _LINK, _HANDLE)

_NUMBER = re.compile(r"[0-9]+(?:[.,'’\u00a0\u202f ][0-9]+)*")
_GROUPED = re.compile(r"[0-9]{1,3}(?:([.,'’\u00a0\u202f ])[0-9]{3})(?:\1[0-9]{3})*")
_AFTERNOON = re.compile(r"([0-9]{1,2})(?::[0-9]{2})?\s?(?:p\.?m\b)|(?:午後|下午|晚上|夜)の?([0-9]{1,2})")
_WORDS = re.compile(rf"(?<![a-z])(?:{'|'.join(NUMBER_WORDS)})(?![a-z])")


def unsupported(text: str, supports: Iterable[str], dates: Iterable[date]) -> tuple[str, ...]:
    """The numbers, links, addresses, handles and dates in `text` that no support holds, as they stand there but for width and case.

    `supports`: the texts it rests on. `dates`: the local days on which these were said; a date may be one of them or follow from one by what a
    support says (tomorrow, next Tuesday, 三日後).
    """
    said, ground = _Text(text), _Ground([_Text(support) for support in supports], tuple(dates))
    names, has_date = ground.names, dict[tuple[int | None, ...], bool]()
    missing = [name for name in said.names if name not in names]
    rest = said.without_names
    for found in sorted(named(rest), key=lambda each: each.start):
        day = (found.year, found.month, found.day)
        if day not in has_date:
            has_date[day] = ground.has_date(found)
        if not has_date[day]:
            missing.append(rest[found.start : found.end].strip())
        rest = f"{rest[: found.start]}{'_' * (found.end - found.start)}{rest[found.end :]}"
    missing += [match[0] for match in _numbers(rest) if not ground.has_number(match[0])]
    return tuple(dict.fromkeys(missing))


class _Text:
    def __init__(self, text: str) -> None:
        self.words = with_digits(_plain(text))
        rest, names = self.words, list[str]()
        for pattern in _NAMES:
            names += [match[0].rstrip(_ENDS).rstrip("/") for match in pattern.finditer(rest)]
            rest = pattern.sub(lambda match: " " + "_" * (len(match[0]) - 1), rest)
        self.names, self.without_names = tuple(names), rest

    @cached_property
    def readings(self) -> frozenset[str]:
        return frozenset(_all_readings(self.words))

    @cached_property
    def mentioned(self) -> tuple[Said, ...]:
        return mentioned(self.words)

    @cached_property
    def reaches(self) -> tuple[Reach, ...]:
        return reaches(self.words)


class _Ground(NamedTuple):
    """What may be said: everything that the supports hold."""

    texts: list[_Text]
    dates: tuple[date, ...]

    @property
    def names(self) -> set[str]:
        return {name for text in self.texts for name in text.names}

    def has_date(self, said: Said) -> bool:
        return any(
            any(agrees(said, other, self.dates) for other in text.mentioned) or any(follows(said, base, text.reaches) for base in self.dates)
            for text in self.texts
        ) or any(follows(said, base, ()) for base in self.dates)

    def has_number(self, number: str) -> bool:
        readings = set(_readings(number))
        if any(not readings.isdisjoint(text.readings) for text in self.texts):
            return True
        return number in {str(day.year) for day in self.dates}


def _plain(text: str) -> str:
    """Lower case, one width, ASCII digits, nothing that cannot be seen."""
    folded = unicodedata.normalize("NFKC", _RAISED.sub(" ", _UNSEEN.sub("", text))).lower()
    return "".join(str(unicodedata.decimal(sign)) if not sign.isascii() and sign.isdecimal() else sign for sign in folded)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """Numbers as long as they belong together: 1,200 and 3.11.4 are one, "8, 9" and "2 000 12" are not."""
    for match in _NUMBER.finditer(text):
        if _GROUPED.fullmatch(match[0]) or re.fullmatch(r"[0-9]+(?:[.,][0-9]+)*", match[0]):
            yield match
        else:
            yield from re.compile(r"[0-9]+(?:[.,][0-9]+)*").finditer(text, match.start(), match.end())


def _readings(number: str) -> Iterator[str]:
    """How a number may be meant: 1.200 is twelve hundred here and one and a fifth there."""
    if _GROUPED.fullmatch(number):
        yield _bare(re.sub(r"[^0-9]", "", number))
    yield ".".join(_bare(part) for part in re.split(r"[^0-9]", number))


def _all_readings(text: str) -> Iterator[str]:
    for match in _numbers(text):
        yield from _readings(match[0])
        yield from map(_bare, re.findall(r"[0-9]+", match[0]))
    for match in _AFTERNOON.finditer(text):
        yield str(int(match[1] or match[2]) + 12)
    for match in _WORDS.finditer(text):
        yield str(NUMBER_WORDS[match[0]])


def _bare(digits: str) -> str:
    return digits.lstrip("0") or "0"
