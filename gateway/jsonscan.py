"""The words of strict JSON: blanks, texts, numbers and literals, each with its own message when it is none (WO-32)."""

from __future__ import annotations

import re
from typing import NoReturn

from gateway.jsontext import JsonFault, Source

MAX_FAULTS = 20

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NO_NUMBER = "JSON knows only finite numbers; write a number, or null"
_MEANT = {
    "NaN": _NO_NUMBER, "Infinity": _NO_NUMBER, "-Infinity": _NO_NUMBER, "True": "write true", "False": "write false",
    "None": "write null", "undefined": "write null or leave the key out", "yes": "write true", "no": "write false",
}  # fmt: skip
_BLANK = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_SINGLE = re.compile(r"'((?:[^'\\\r\n]|\\.)*)'")
BARE = re.compile(r"[^\s,:;=，：、{}\[\]\"'“”„‘’＂/#\x00-\x1f]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBERISH = re.compile(r"[+-]?\.?[0-9]")
_LINE = re.compile(r"[^\r\n]*")
_UNIT = re.compile(r"\\u([0-9a-fA-F]{4})")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class Stop(Exception):
    """What follows can no longer be understood."""


class Scanner:
    """Reads one word at a time from `pos` on. A plain fault is noted in `faults` and read as it was meant; any other raises `Stop`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.pos: int = 0
        self.faults: list[JsonFault] = []

    def fault(self, offset: int, message: str, hint: str = "") -> None:
        line, column = self.source.where(offset)
        self.faults.append(JsonFault(message=message, line=line, column=column, hint=hint, excerpt=self.source.excerpt(line, column)))
        if len(self.faults) >= MAX_FAULTS:
            raise Stop

    def stop(self, offset: int, message: str, hint: str = "") -> NoReturn:
        self.fault(offset, message, hint)
        raise Stop

    def peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def line(self, offset: int) -> int:
        return self.source.where(offset)[0]

    def skip(self) -> None:
        """Over blanks, and with a fault over comments and characters that merely look like blanks."""
        while True:
            self.pos = _match(_BLANK, self.text, self.pos).end()
            char, start = self.peek(), self.pos
            if char == "#" or self.text.startswith(("//", "/*"), start):
                self.fault(start, "comments are not allowed in JSON", "delete it")
                block = self.text.startswith("/*", start)
                end = self.text.find("*/", start + 2) if block else _match(_LINE, self.text, start).end()
                if end < 0:
                    self.stop(start, "this comment is never closed")
                self.pos = end + 2 if block else end
            elif char and (char < " " or char.isspace() or char == "\ufeff"):
                self.fault(start, f"{name_of(char)} outside a text", "delete it, or write a plain space")
                self.pos += 1
            else:
                return

    def word(self, start: int, word: str) -> bool | int | float | None:
        if word in _WORDS:
            return _WORDS[word]
        if number := _NUMBER.fullmatch(word):
            try:
                value = float(word) if number[1] or number[2] else int(word)
            except ValueError:  # Python refuses whole numbers of more than some thousand digits
                value = float("inf")
            if value in (float("inf"), float("-inf")):
                self.fault(start, "this number is too large")
            return value
        if word in _MEANT or word.lower() in _WORDS:
            self.fault(start, f"{word} is not JSON", _MEANT.get(word) or f"write {word.lower()}")
        elif _NUMBERISH.match(word):
            self.fault(start, "this is not a JSON number", "digits, one point, an exponent: no leading zero or plus, no hexadecimal, no separators")
        else:
            self.fault(start, "a text without quotes", 'put it in double quotes: "like this"')
            if self.peek() not in ("", ",", "}", "]", " ", "\t", "\r", "\n"):
                raise Stop
        return None

    def string(self) -> str:
        start = self.pos
        if self.peek() == "'":
            single = _SINGLE.match(self.text, start)
            self.fault(start, "single quotes", "texts and keys stand in double quotes")
            if single is None:
                raise Stop
            self.pos = single.end()
            return single[1]
        parts: list[str] = []
        self.pos += 1
        while True:
            plain = _match(_PLAIN, self.text, self.pos)
            parts.append(plain.group())
            self.pos = plain.end()
            char = self.peek()
            if char == '"':
                self.pos += 1
                return "".join(parts)
            if char in ("", "\n", "\r"):
                self.stop(start, "this text is not closed on its line", 'add the closing double quote; a line break inside a text is written \\n')
            if char == "\\":
                parts.append(self._escape())
            else:
                self.fault(self.pos, f"{name_of(char)} inside a text", "write it as \\t" if char == "\t" else "delete it")
                self.pos += 1

    def _escape(self) -> str:
        start = self.pos
        if (letter := self.text[start + 1 : start + 2]) in _ESCAPES:
            self.pos += 2
            return _ESCAPES[letter]
        if pair := _PAIR.match(self.text, start):
            self.pos = pair.end()
            return chr(0x10000 + ((int(pair[1], 16) - 0xD800) << 10) + (int(pair[2], 16) - 0xDC00))
        if (unit := _UNIT.match(self.text, start)) is None:
            self.fault(start, "a backslash that starts no escape", "write \\\\ for a backslash, and / in paths")
            self.pos += 1
            return ""
        self.pos = unit.end()
        if 0xD800 <= (code := int(unit[1], 16)) < 0xE000:
            self.fault(start, f"\\u{unit[1]} is half a character (a lone surrogate)", "write the character itself")
        return chr(code)


def _match(pattern: re.Pattern[str], text: str, pos: int) -> re.Match[str]:
    found = pattern.match(text, pos)
    assert found is not None  # only for patterns that match nothing as well
    return found


def name_of(char: str) -> str:
    return f"control character U+{ord(char):04X}" if char < " " else char if char.isprintable() else f"U+{ord(char):04X}"
