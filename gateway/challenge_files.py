"""The challenges that people may play: one JSON file each in the folder `challenges` of `data_dir`, its name the id (docs/characters.md).

They lie beside the database, not in the workspace: nothing there is indexed, dreamt over or put into a prompt by itself, so nobody's search tells
how a challenge is won. A file with a fault is left out and named; the others go on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from gateway.challenges import Challenge
from gateway.jsonfile import Document, JsonFileError, KeyPath, read_json

FOLDER = "challenges"
FILES_MAX = 200
FILE_MAX = 100_000  # bytes
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """Challenges by id, in the order of their names, and a line for each file that is none: its name, the place, what is wrong."""

    challenges: Mapping[str, Challenge]
    faults: tuple[str, ...] = ()


class ChallengeFiles:
    def __init__(self, folder: Path, characters: Callable[[], Collection[str]]) -> None:
        """`characters`: ids of those that may play."""
        self._folder = folder
        self._characters = characters

    async def all(self) -> Defined:
        """Read anew each time: they are few and small, and a changed one counts at once."""
        return await asyncio.to_thread(_read, self._folder, frozenset(self._characters()))


def _read(folder: Path, characters: Collection[str]) -> Defined:
    found: dict[str, Challenge] = {}
    faults: list[str] = []
    try:
        files = sorted(path for path in folder.glob("*.json") if path.is_file())
    except OSError as error:
        return Defined(challenges={}, faults=(f"{folder.name}: cannot be read ({error.strerror})",))
    for path in files[:FILES_MAX]:
        try:
            challenge = _one(path)
            if challenge.character not in characters:
                raise ValueError(f'character: there is no character "{challenge.character}"; known: {", ".join(sorted(characters))}')
            found[path.stem] = challenge
        except (OSError, ValueError, JsonFileError) as error:
            faults.append(f"{path.name}: {error.strerror if isinstance(error, OSError) else error}")
    if len(files) > FILES_MAX:
        faults.append(f"{folder.name}: {len(files)} files; the first {FILES_MAX} are read")
    return Defined(challenges=found, faults=tuple(faults))


def _one(path: Path) -> Challenge:
    """ValueError and JsonFileError say what is wrong, and where."""
    if not _ID.fullmatch(path.stem):
        raise ValueError("the name must have 1 to 64 letters, digits, _ . -")
    data = path.read_bytes()
    if len(data) > FILE_MAX:
        raise ValueError(f"{len(data)} bytes; at most {FILE_MAX} are read")
    document = read_json(data)
    try:
        return Challenge.model_validate(document.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = tuple(part for part in first["loc"] if isinstance(part, int) or part in Challenge.model_fields) or first["loc"]
        raise ValueError(f"{_place(document, where)}{'.'.join(map(str, where)) or 'the file'}: {first['msg']}") from error


def _place(document: Document, where: KeyPath) -> str:
    place = document.places.get(where)
    line, column = (place.key or place.value) if place else (0, 0)
    return f"line {line}, column {column}: " if place else ""
