"""Whether a word tag occurs in the talk: whole words, and parts of a text where a script puts no blanks between them (SM-18). Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import regex

from memory.words import SPACELESS

_SPACED = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{SPACELESS}]]"
_LETTER = regex.compile(rf"(?V1){_SPACED}")


class Talk:
    """The texts of a window, folded once for all tags that are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(map(folded, texts))
        self._known: dict[str, bool] = {}

    def has(self, tag: str) -> bool:
        """A tag that says nothing once folded never occurs."""
        if tag not in self._known:
            self._known[tag] = self._occurs(folded(tag).strip())
        return self._known[tag]

    def _occurs(self, tag: str) -> bool:
        return bool(tag) and tag in self._text and _pattern(tag).search(self._text) is not None


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=2048)
def _pattern(tag: str) -> regex.Pattern[str]:
    """A border is asked for only beside a letter of a script with blanks, so `cat` is found in 私のcatです and not in concatenate."""
    before = f"(?<!{_SPACED})" if _LETTER.match(tag[0]) else ""
    behind = f"(?!{_SPACED})" if _LETTER.match(tag[-1]) else ""
    return regex.compile(f"(?V1){before}{regex.escape(tag)}{behind}")
