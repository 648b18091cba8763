"""The text of a file that people edit: its bytes decoded, its lines, and a line shown with a mark and without secrets (WO-32)."""

from __future__ import annotations

import bisect
import codecs
import re
import unicodedata
from dataclasses import dataclass

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LINE_END = re.compile(r"\r\n|\r|\n")
# Faults are shown in logs and on pages, together with the line: what follows a secret's name (misspelt, too), a password in an address and what
# merely looks like a key are covered, by stars of the same length so that the mark still points at the right place.
_SECRET = re.compile(
    r"""(?:key|kee|tok(?!ens)|secr|pass|pwd)[\w-]{0,12}(?>["']\s*+[:=]?|\s*+[:=])\s*+(?!["']?\$\{)(?P<a>"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"',{}\[\]]+)"""
    r"""|://(?P<b>[^/@\s"]*)@|(?<![\w:+=-])(?P<c>(?=[a-z_:+=-]*[0-9])(?=[0-9_:+=-]*[a-z])[a-z0-9_:+=-]{16,})""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFault:
    """`line` and `column` count from 1, columns in characters. `excerpt` is the line and, below it, a mark under the column."""

    message: str
    line: int
    column: int
    hint: str = ""
    excerpt: str = ""


class JsonFileError(Exception):
    """The bytes are no strict JSON. `faults` holds at least one, in the order of the file."""

    def __init__(self, faults: list[JsonFault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.line, fault.column)))
        super().__init__("; ".join(f"line {f.line}, column {f.column}: {f.message}" for f in self.faults))


def stars(text: str) -> str:
    """As many stars as `text` has characters; quotes and line ends stay."""
    return re.sub(r"[^\r\n\"']", "*", text)


def veil(text: str) -> str:
    """`text` at the same length with everything that may be a secret covered by stars."""

    def cover(match: re.Match[str]) -> str:
        start, end = match.span(match.lastgroup or 0)
        return text[match.start() : start] + stars(text[start:end]) + text[end : match.end()]

    return _SECRET.sub(cover, text)


class Source:
    """The text and where its lines begin. Lines and columns count from 1, columns in characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._veiled: str | None = None

    def where(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def excerpt(self, line: int, column: int) -> str:
        """The line, cut to 100 characters around the column and with secrets covered; below it a mark under the column."""
        if self._veiled is None:
            self._veiled = veil(self.text)
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        row = self._veiled[start:end].rstrip("\r\n")
        left = max(0, column - 60)
        shown = "".join(char if char.isprintable() else " " for char in row[left : left + 100])
        before = shown[: column - 1 - left]
        width = len(before) + sum(unicodedata.east_asian_width(char) in "WF" for char in before)
        return f"{shown}\n{' ' * width}^"


class Undecodable(Exception):
    """The bytes are no text that we read. `before` is what came before the first bad byte, `source` the whole with replacements."""

    def __init__(self, message: str, before: str = "", source: Source | None = None) -> None:
        super().__init__(message)
        self.source = source or Source("")
        self.line, self.column = self.source.where(len(before))


def decode(data: bytes) -> Source:
    """UTF-8 with or without a byte order mark, UTF-16 with one. Raises `Undecodable`, whose text names the likely encoding."""
    encoding, body = next(((name, data[len(bom) :]) for bom, name in _BOMS if data.startswith(bom)), ("utf-8", data))
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Undecodable("the file is in UTF-32")
    if encoding == "utf-8" and len(body) > 1 and (body[0] == 0) != (body[1] == 0):
        raise Undecodable("the file looks like UTF-16 without a byte order mark")
    try:
        return Source(body.decode(encoding))
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding)
        guesses = " or ".join(name for name in ("Windows-1252", "GBK", "Shift_JIS") if encoding == "utf-8" and _decodes(body, name))
        message = f"byte {body[error.start]:#04x} is not {encoding.upper()}" + (f"; the file may have been saved as {guesses}" if guesses else "")
        raise Undecodable(message, before, Source(before + body[error.start :].decode(encoding, "replace"))) from None


def _decodes(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
