"""How long a text is, in the unit each platform counts in, and where it may be cut (CH-131, CH-132).

Python counts code points; Telegram and Discord count UTF-16 units, WeChat bytes of UTF-8, a person sees graphemes, a table needs columns.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Protocol, cast

import regex  # pyright: ignore[reportMissingTypeStubs]  (the package ships none; what is used of it is typed by _Pattern)

from channels.port import TextUnit


class _Pattern(Protocol):
    def findall(self, string: str) -> list[str]: ...


_GRAPHEME = cast("_Pattern", regex.compile(r"\X"))  # pyright: ignore[reportUnknownMemberType]  (no stubs, see above)

# A last cluster that what comes next would turn into something else: one flag letter of two, a joiner without its right side, a keycap without its
# key, a tag sequence without its end.
_UNSETTLED = re.compile("[\U0001f1e6-\U0001f1ff]|.*\u200d|[0-9#*]\ufe0f|\U0001f3f4[\U000e0020-\U000e007e]+", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]+\\Z")


def measure(text: str, unit: TextUnit) -> int:
    """The length of `text` in `unit`; a lone surrogate counts like the character it is half of, instead of raising."""
    match unit:
        case TextUnit.CODEPOINTS:
            return len(text)
        case TextUnit.UTF16:
            return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
        case TextUnit.BYTES:
            return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def graphemes(text: str) -> list[str]:
    """`text` as the characters a person sees, in order; joined they are `text`."""
    return _GRAPHEME.findall(text)


def display_width(text: str) -> int:
    """Columns of `text` in a fixed-width font: CJK and emoji 2, marks and controls 0, all else 1 (CH-136)."""
    return sum(map(_width, graphemes(text)))


def settled(text: str) -> str:
    """`text` without a last grapheme that is visibly half written; for text that is still arriving (CH-98)."""
    text = _SURROGATES.sub("", text)
    last = graphemes(text)[-1:]
    return text.removesuffix(last[0]) if last and _UNSETTLED.fullmatch(last[0]) else text


def is_wide(character: str) -> bool:
    """Is this code point East Asian wide or full-width (emoji are wide too)?"""
    return unicodedata.east_asian_width(character) in "WF"


def _width(grapheme: str) -> int:
    first = grapheme[0]
    if is_wide(first) or "\ufe0f" in grapheme or (len(grapheme) > 1 and "\U0001f1e6" <= first <= "\U0001f1ff"):
        return 2
    return 0 if unicodedata.category(first) in ("Cc", "Cf", "Mn", "Me") else 1
