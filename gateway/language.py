"""Every sentence the gateway says to a person, in English, Japanese and Chinese: one catalogue per language under `texts/`.

A test holds the catalogues complete and their placeholders equal. The language of a chat is the person's setting, else the client's, else
guessed from the script of what they wrote.
"""

from __future__ import annotations

import json
import string
from functools import cache
from importlib.resources import files

from memory.languages import LANGUAGES, guess

__all__ = ["LANGUAGES", "Declined", "catalogue", "from_tag", "guess", "language_for", "say"]


class Declined(Exception):
    """Something a person asked for is not done: `key` names the sentence that says why, `values` fill it in."""

    def __init__(self, key: str, /, **values: object) -> None:
        super().__init__(f"{key} {values}" if values else key)
        self.key = key
        self.values = values


def say(language: str, key: str, **values: object) -> str:
    """The sentence `key` in `language` (English for an unknown one). KeyError for an unknown key: that is a fault of ours, not of the person."""
    return _COUNTING.vformat(catalogue(language if language in LANGUAGES else "en")[key], (), values)


class _Counting(string.Formatter):
    """As `str.format`, and `{n:file|files}` is "1 file" or "2 files"."""

    def format_field(self, value: object, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        return f"{value} {one if str(value) == '1' else many}" if bar else super().format_field(value, format_spec)


_COUNTING = _Counting()


def from_tag(tag: str) -> str:
    """`ja-JP`, `zh-Hans-CN` or an Accept-Language header, reduced to one of ours; empty when none fits."""
    for choice in tag.split(","):
        primary = choice.split(";")[0].strip().split("-")[0].lower()
        if primary in LANGUAGES:
            return primary
    return ""


def language_for(tag: str, text: str, *, chosen: str = "") -> str:
    """The language `chosen` by a person, else that of their client's tag, else the script of what they wrote."""
    return chosen or from_tag(tag) or guess(text)


@cache
def catalogue(language: str) -> dict[str, str]:
    return json.loads((files("gateway") / "texts" / f"{language}.json").read_text(encoding="utf-8"))
