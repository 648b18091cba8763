"""Half-written Markdown made presentable while it is still arriving (CH-98): whole graphemes only, and what is open closed for display.

A fence needs no closing: a text that ends inside one is read as code to its end. What is left are inline code, emphasis and links of the last
paragraph.
"""

from __future__ import annotations

import re

from channels.markdown import tail
from channels.message import clean
from channels.units import settled

_TOKEN = re.compile(r"\\.|(?P<ticks>`+)|(?P<run>\*+|_+|~~)|[^\\`*_~]+|.", re.DOTALL)
_HALF_LINK = re.compile(r"!?\[([^\[\]\n]*)(?:\](?:\([^()\s]*)?)?\Z")
_HALF_FENCE = re.compile(r"\n[ \t>]*(?:`+|~+)\Z")


def closed(partial: str) -> str:
    """`partial` as it may be shown now. Only its end differs: a half grapheme, a mark with nothing behind it and a half link are held back."""
    text = clean(settled(partial)).rstrip()
    words = tail(text)
    if not words:
        return _HALF_FENCE.sub("", text)
    if not text.endswith(words.rpartition("\n")[2]):
        return text
    dangling, closing = _open_marks(_HALF_LINK.sub(r"\1", words))
    text = _HALF_LINK.sub(r"\1", text)
    return text[: len(text) - dangling].rstrip() + closing


def _open_marks(words: str) -> tuple[int, str]:
    """How many characters at the end of `words` are a mark that nothing follows, and what closes the marks still open."""
    stack: list[tuple[str, int]] = []
    position = 0
    while found := _TOKEN.match(words, position):
        start, position = found.span()
        if ticks := found["ticks"]:
            end = re.compile(rf"(?<!`){ticks}(?!`)").search(words, position)
            if end is None:
                return (len(ticks), _closing(stack)) if position == len(words) else (0, ticks + _closing(stack))
            position = end.end()
        elif run := found["run"]:
            before, after = words[start - 1 : start], words[position : position + 1]
            length = len(run)
            inside_word = run[0] == "_" and before.isalnum() and after.isalnum()
            if before.strip() and not inside_word:
                length = _closed_by(stack, run[0], length, opens=bool(after.strip()))
            if not after and length:
                return length, _closing(stack)
            if after.strip() and length and not inside_word:
                stack.append((run[0], length))
    return 0, _closing(stack)


def _closed_by(stack: list[tuple[str, int]], character: str, length: int, *, opens: bool) -> int:
    """Close what a run of marks closes; the length left over may open something.

    Where it could do either, CommonMark's rule of three decides: the `*` of `**a*b` opens.
    """
    while length and stack and stack[-1][0] == character:
        opened = stack[-1][1]
        if opens and (length + opened) % 3 == 0 and length % 3:
            break
        stack.pop()
        if opened > length:
            stack.append((character, opened - length))
        length = max(length - opened, 0)
    return length


def _closing(stack: list[tuple[str, int]]) -> str:
    return "".join(character * length for character, length in reversed(stack))
