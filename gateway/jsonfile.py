"""A strict JSON reader for files that people edit: it keeps the place of every key and value, and says in words what is wrong (WO-32).

The standard parser takes the last of two equal keys, accepts NaN, stops at the first fault and forgets where things stood. This one goes on
after a fault whose meaning is plain (a comma too many, a comment, single quotes), so that one look shows most of what there is to repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gateway.jsonscan import BARE, Scanner, Stop, name_of
from gateway.jsontext import JsonFault, JsonFileError, Source, Undecodable, decode, stars, veil

__all__ = ["Document", "Json", "JsonFault", "JsonFileError", "KeyPath", "Place", "read_json"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
KeyPath: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 64

_SAVE_AS = "save the file as UTF-8 (UTF-16 with a byte order mark is read too)"
_VARIABLE = re.compile(r'"\$\{\w+\}"')
_COMMAS = {",": "", ";": "a semicolon", "，": "a full-width comma", "、": "an ideographic comma"}
_COLONS = {":": "", "=": "an equals sign", "：": "a full-width colon"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands, and its key if it has one, as (line, column). `span` is its first and last offset in the text."""

    key: tuple[int, int] | None
    value: tuple[int, int]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read. `places` knows every path of `value`, the root being ()."""

    value: Json
    places: Mapping[KeyPath, Place]
    source: Source = field(repr=False)

    def excerpt(self, line: int, column: int) -> str:
        """The line, secrets covered, with a mark below the column."""
        return self.source.excerpt(line, column)

    def covered(self, paths: Iterable[KeyPath]) -> Document:
        """The same with these values hidden in every excerpt; a mere `${NAME}` stays, and so do braces."""
        text, parts, done = self.source.text, list[str](), 0
        for start, end in sorted(self.places[path].span for path in paths):
            if text[start] not in "{[" and not _VARIABLE.fullmatch(text, start, end):
                parts += (text[done:start], stars(text[start:end]))
                done = end
        return replace(self, source=Source("".join((*parts, text[done:]))))


def read_json(data: bytes) -> Document:
    """Reads the bytes of a whole file: UTF-8 with or without a byte order mark, UTF-16 with one. Raises `JsonFileError`, never anything else."""
    try:
        parser = _Parser(decode(data))
    except Undecodable as error:
        excerpt = error.source.excerpt(error.line, error.column)
        fault = JsonFault(message=str(error), line=error.line, column=error.column, hint=_SAVE_AS, excerpt=excerpt)
        raise JsonFileError([fault]) from error
    value = parser.document()
    return Document(value=value, places=parser.places, source=parser.source)


class _Parser(Scanner):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.places: dict[KeyPath, Place] = {}

    def document(self) -> Json:
        value: Json = None
        try:
            if not self.text.strip():
                self.stop(0, "the file is empty", "write at least {}")
            value = self._value((), None, 0)
            self.skip()
            if self.peek():
                self.stop(self.pos, f"{name_of(self.peek())} after the end of the document", "a closing brace stands too early, or one is too many")
        except Stop:
            pass
        if self.faults:
            raise JsonFileError(self.faults)
        return value

    def _value(self, path: KeyPath, key: int | None, depth: int) -> Json:
        self.skip()
        start = self.pos
        value = self._any(path, depth)
        where = self.source.where
        self.places[path] = Place(key=None if key is None else where(key), value=where(start), span=(start, self.pos))
        return value

    def _any(self, path: KeyPath, depth: int) -> Json:
        start, char = self.pos, self.peek()
        if char in ("{", "["):
            if depth >= MAX_DEPTH:
                self.stop(start, f"nested deeper than {MAX_DEPTH} levels")
            return self._object(path, depth) if char == "{" else self._array(path, depth)
        if char in ('"', "'"):
            return self.string()
        bare = BARE.match(self.text, start)
        if bare is None:
            found = name_of(char) if char else "the end of the file"
            self.stop(start, f"{found} where a value is wanted", 'texts stand in straight double quotes: "like this"')
        self.pos = bare.end()
        return self.word(start, bare.group())

    def _array(self, path: KeyPath, depth: int) -> Json:
        items: list[Json] = []
        self._members("[", "]", lambda: items.append(self._value((*path, len(items)), None, depth + 1)))
        return items

    def _object(self, path: KeyPath, depth: int) -> Json:
        members: dict[str, Json] = {}
        seen: dict[str, int] = {}

        def member() -> None:
            start = self.pos
            name = self._key()
            self.skip()
            if self.peek() not in _COLONS or not self.peek():
                self.stop(self.pos, f"no colon after the key of line {self.line(start)}", 'write "key": value')
            if wrong := _COLONS[self.peek()]:
                self.fault(self.pos, f"{wrong} instead of a colon")
            self.pos += 1
            if name in seen:
                first = self.line(seen[name])
                self.fault(start, f'the key "{veil(name)}" stands twice: in line {first} and in line {self.line(start)}', "delete one of them")
            seen[name] = start
            members[name] = self._value((*path, name), start, depth + 1)

        self._members("{", "}", member)
        return members

    def _members(self, opening: str, closing: str, member: Callable[[], None]) -> None:
        """What stands between two braces or brackets, separated by commas. `member` reads one and moves on, or stops."""
        opened, last, comma = self.pos, -1, -1
        self.pos += 1
        while True:
            self.skip()
            char = self.peek()
            if char == closing:
                if comma >= 0:
                    self.fault(comma, f"comma before a closing {'brace' if closing == '}' else 'bracket'}", "delete the comma")
                self.pos += 1
                return
            if not char:
                self.stop(opened, f"the {opening} of line {self.line(opened)} is never closed", f"add the missing {closing}")
            if char in ("}", "]"):
                self.stop(self.pos, f"{char} where {closing} has to close the {opening} of line {self.line(opened)}")
            if char in _COMMAS:
                if last < 0 or comma >= 0:
                    self.fault(self.pos, "a comma too many", "delete it")
                elif _COMMAS[char]:
                    self.fault(self.pos, f"{_COMMAS[char]} instead of a comma")
                comma = self.pos
                self.pos += 1
                continue
            if last >= 0 and comma < 0:
                self.fault(last, f"missing comma after line {self.line(last)}", "put a comma where the mark is")
            member()
            last, comma = self.pos, -1

    def _key(self) -> str:
        if self.peek() in ('"', "'"):
            return self.string()
        bare = BARE.match(self.text, self.pos)
        if bare is None:
            self.stop(self.pos, f"{name_of(self.peek())} where a key in double quotes is wanted")
        self.fault(self.pos, "a key without quotes", f'write "{veil(bare.group())[:40]}"')
        self.pos = bare.end()
        return bare.group()
