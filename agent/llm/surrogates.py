"""Lone surrogates become U+FFFD on the way in and out (MD-19): such text cannot be encoded, so it could neither be sent nor stored."""

from __future__ import annotations


def mend(text: str) -> str:
    """`text` with pairs joined and lone surrogates replaced by U+FFFD; text without surrogates comes back as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Mender:
    """Mends text that comes in pieces: a high surrogate at the end of a piece waits for its low half, which may open the next one."""

    def __init__(self) -> None:
        self._waiting = ""

    def feed(self, piece: str) -> str:
        """The text that is certain by now; may be empty."""
        text = self._waiting + piece
        self._waiting = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._waiting = text[:-1], text[-1]
        return mend(text)

    def end(self) -> str:
        """What waited in vain: U+FFFD, or nothing."""
        left, self._waiting = self._waiting, ""
        return mend(left)
