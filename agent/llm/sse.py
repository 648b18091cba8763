"""Bytes of an answer in, the data of its server-sent events out; a body that is no event stream is kept whole.

Our own reader and not the SDK's, because that one loses what we must show: of a 200 with HTML or a JSON error it gives no event and no body
(MD-02), and it has no size limit. What the bytes are is told by the bytes: servers label streams `text/plain` and errors `text/event-stream`.
"""

from __future__ import annotations

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Of one answer, frames included. 100,000 tokens of one frame each are about 30 MB."""
MAX_EVENT_BYTES = 8 * 1024 * 1024
HEAD_BYTES = 2048
"""Kept of a stream's start, for the excerpt when no event comes."""
DONE = "[DONE]"
BOM = b"\xef\xbb\xbf"


class TooLarge(ValueError):
    """The answer or one of its events is over the limit."""


class EventReader:
    """Feed it every chunk, then `end()`. `is_stream` is None until the first byte that is no space; `body` is the text of what was no stream."""

    def __init__(self) -> None:
        self.is_stream: bool | None = None
        self.done = False
        """`[DONE]` was read; what comes after it is not ours."""
        self.events = 0
        self._seen = 0
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._after_cr = False
        self._data: list[str] = []

    @property
    def body(self) -> str:
        """All of a body that is no stream, the head of one that is."""
        return b"".join(self._kept).decode("utf-8", "replace").lstrip("\ufeff")

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events this chunk completes, in order. Raises TooLarge."""
        self._seen += len(chunk)
        if self._seen > MAX_BODY_BYTES:
            raise TooLarge(f"an answer of more than {MAX_BODY_BYTES} bytes")
        if self.is_stream is None:
            start = (b"".join(self._kept) + chunk).removeprefix(BOM).lstrip()[:1]
            if start and start not in BOM:
                self.is_stream = start not in (b"{", b"[", b"<")
        if self.is_stream is not True or self._kept_bytes < HEAD_BYTES:
            self._kept.append(chunk)
            self._kept_bytes += len(chunk)
        return [] if self.is_stream is False else self._events(chunk)

    def end(self) -> list[str]:
        """The data of an event that was not closed by an empty line; servers forget it after `[DONE]`."""
        if self.is_stream is False:
            return []
        return self._events(b"\n\n") if self._line or self._data else []

    def _events(self, chunk: bytes) -> list[str]:
        events: list[str] = []
        for line in self._lines(chunk):
            if self.done:
                break
            if line:
                self._field(line)
            elif self._data:
                data, self._data = "\n".join(self._data), []
                self.done = data.startswith(DONE)
                if data and not self.done:
                    events.append(data)
                    self.events += 1
        return events

    def _lines(self, chunk: bytes) -> list[str]:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        parts = chunk.splitlines()
        closed = chunk.endswith((b"\n", b"\r"))
        self._line.append(parts[0])
        self._line_bytes += len(parts[0])
        if self._line_bytes > MAX_EVENT_BYTES:
            raise TooLarge(f"an event of more than {MAX_EVENT_BYTES} bytes")
        if len(parts) == 1 and not closed:
            return []
        lines = [b"".join(self._line), *parts[1:]]
        rest = [] if closed else [lines.pop()]
        self._line, self._line_bytes = rest, sum(map(len, rest))
        return [line.decode("utf-8", "replace") for line in lines]

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name.lstrip("\ufeff") == "data":
            self._data.append(value.removeprefix(" "))
