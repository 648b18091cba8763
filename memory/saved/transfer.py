"""Saved memories as one versioned JSON document: out, and in again with a preview and in one transaction (SM-91).

Whoever calls has checked the rights on every list, before reading the document too. Vectors are not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import sqlalchemy as sa
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memory.saved import journal, lineages, stored
from memory.saved.rows import (
    CHANNEL_MAX,
    CHANNELS_MAX,
    TAG_MAX,
    TAGS_MOST,
    ListKey,
    ListKind,
    Memory,
    Origin,
    clean,
    content_hash,
    distinct,
    norm_hash,
)
from memory.saved.writing import Limits
from memory.schema import characters

FORMAT = "yumegate-memories"
VERSION = 1
LISTS_MAX = 10_000  # of a document


class NotAnExport(ValueError):
    """The text is no document of this kind, or of a version that is not known here. Says which and what to do."""


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time outside of the calendar") from None


_Time: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_Tag: TypeAlias = Annotated[str, StringConstraints(max_length=TAG_MAX)]
_Channel: TypeAlias = Annotated[str, StringConstraints(max_length=CHANNEL_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Row(_Part):
    content: str
    pinned: bool = False
    protected: bool = False
    origin: str = ""
    created_at: _Time
    updated_at: _Time
    tags: Annotated[tuple[_Tag, ...], Field(max_length=TAGS_MOST)] = ()
    channel_ids: Annotated[tuple[_Channel, ...], Field(max_length=CHANNELS_MAX)] = ()


class List(_Part):
    """`character`: its id in the configuration, with the name it had; `owner`: id of the person or space, where it came from."""

    kind: ListKind
    owner: str = ""
    character: str = ""
    character_name: str = ""
    rows: tuple[Row, ...] = ()


class Document(_Part):
    format: Literal["yumegate-memories"]
    version: int = Field(ge=1)
    exported_at: AwareDatetime
    lists: Annotated[tuple[List, ...], Field(max_length=LISTS_MAX)] = ()


class Mode(StrEnum):
    MERGE = "merge"
    REPLACE = "replace"  # unpinned rows of the lists go first; pins are spared


class Reason(StrEnum):
    EMPTY = "empty"
    TOO_LONG = "too_long"
    FULL = "full"  # the row and those behind it find no place
    PINS_FULL = "pins_full"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why nothing is imported: `list_at` and `row_at` count from 0 in the document."""

    list_at: int
    row_at: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`new` rows would come, `standing` ones say exactly what is there already, `replaced` ones would go; `left_out` lists have no target.

    `crosses`: rows would go between a space and a person, which the person is warned of.
    """

    new: int
    standing: int
    replaced: int
    left_out: tuple[int, ...]
    crosses: bool
    faults: tuple[Fault, ...]


class ImportRefused(Exception):
    """Nothing was imported. `preview` says why: its faults, or a crossing that nobody agreed to."""

    def __init__(self, preview: Preview) -> None:
        super().__init__("nothing was imported")
        self.preview = preview


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`targets`: the list that each list of the document goes to, by its place; one without a target is left out. `keep_pins`: one's own backup is
    restored with its pins. `agreed_to_cross`: after the warning."""

    document: Document
    targets: Mapping[int, ListKey]
    mode: Mode = Mode.MERGE
    keep_pins: bool = False
    agreed_to_cross: bool = False


def export(connection: sa.Connection, keys: Sequence[ListKey], now: datetime) -> str:
    """The document of these lists, as text. Archived rows too."""
    names = {row.id: row for row in connection.execute(sa.select(characters))}
    lists: list[dict[str, Any]] = []
    for key in keys:
        character = names.get(key.character)
        lists.append(
            {
                "kind": key.kind.value,
                "owner": key.owner,
                "character": "" if character is None else character.config_id,
                "character_name": "" if character is None else character.name,
                "rows": [_exported(memory) for memory in stored.rows_of(connection, [key])],
            }
        )
    document = {"format": FORMAT, "version": VERSION, "exported_at": now.isoformat(), "lists": lists}
    return json.dumps(document, ensure_ascii=False, indent=1)


def parse(text: str | bytes) -> Document:
    """Raises NotAnExport."""
    try:
        document = Document.model_validate_json(text)
    except ValidationError as error:
        where = ", ".join(sorted({".".join(map(str, fault["loc"])) or "the file" for fault in error.errors()})[:5])
        raise NotAnExport(f"this is no export of saved memories: {where} does not fit; choose a file that was exported here") from None
    if document.version > VERSION:
        raise NotAnExport(f"the file is of version {document.version} and this program reads up to {VERSION}: update it first")
    return document


def targets_of(connection: sa.Connection, document: Document, *, person: str, spaces: Collection[str] = ()) -> dict[int, ListKey]:
    """Where each list belongs, as far as that is known: the person's own lists, for characters known here, and those `spaces` that they manage."""
    known = lineages.lineages(connection)
    found: dict[int, ListKey] = {}
    for at, each in enumerate(document.lists):
        character = known.get(each.character, "")
        if each.kind is ListKind.GLOBAL:
            found[at] = ListKey(ListKind.GLOBAL, person)
        elif character and each.kind is ListKind.CHARACTER:
            found[at] = ListKey(ListKind.CHARACTER, person, character)
        elif character and each.owner in spaces:
            found[at] = ListKey(ListKind.SPACE, each.owner, character)
    return found


def preview(connection: sa.Connection, wish: Wish, *, limits: Limits) -> Preview:
    """What the import would do, changing nothing."""
    return _planned(connection, wish, limits)[0]


def bring_in(connection: sa.Connection, wish: Wish, now: datetime, *, by: str, limits: Limits) -> Preview:
    """Import, all or nothing; what was done. `by`: the person. Raises ImportRefused.

    Rows come unprotected, unpinned, active, with a counter of 0, never matched and private-origin; dates are kept, future ones are now.
    """
    stored.lock(connection, set(wish.targets.values()))
    shown, wanted, replaced = _planned(connection, wish, limits)
    if shown.faults or (shown.crosses and not wish.agreed_to_cross):
        raise ImportRefused(shown)
    stored.delete(connection, replaced)
    for memory in replaced:
        journal.void_row(connection, memory.id, now)
    for key, row, pinned in wanted:
        stored.insert(connection, _imported(key, row, pinned, by, now))
    return shown


_Wanted = list[tuple[ListKey, Row, bool]]


def _planned(connection: sa.Connection, wish: Wish, limits: Limits) -> tuple[Preview, _Wanted, list[Memory]]:
    """What would be done: the preview, the rows that come with their lists and pins, and those that go."""
    keys = sorted(set(wish.targets.values()), key=str)
    there = stored.rows_of(connection, keys)
    replaced = [memory for memory in there if wish.mode is Mode.REPLACE and not memory.pinned]
    staying = [memory for memory in there if wish.mode is Mode.MERGE or memory.pinned]
    held = {(key, pinned): sum(1 for each in staying if each.key == key and each.pinned is pinned) for key in keys for pinned in (True, False)}
    texts = {(each.key, norm_hash(each.content)) for each in staying}
    wanted: _Wanted = []
    faults: list[Fault] = []
    standing = 0
    for at, key in sorted(wish.targets.items()):
        for row_at, row in enumerate(wish.document.lists[at].rows):
            content, pinned = clean(row.content), row.pinned and wish.keep_pins
            if not content or len(content) > limits.content:
                faults.append(Fault(at, row_at, Reason.TOO_LONG if content else Reason.EMPTY))
                continue
            if (key, norm_hash(content)) in texts:
                standing += 1
                continue
            texts.add((key, norm_hash(content)))
            held[key, pinned] += 1
            if held[key, pinned] > (limits.pinned if pinned else limits.unpinned):
                faults.append(Fault(at, row_at, Reason.PINS_FULL if pinned else Reason.FULL))
            wanted.append((key, row.model_copy(update={"content": content}), pinned))
    shown = Preview(
        new=len(wanted),
        standing=standing,
        replaced=len(replaced),
        left_out=tuple(at for at in range(len(wish.document.lists)) if at not in wish.targets),
        crosses=any((wish.document.lists[at].kind is ListKind.SPACE) != (key.kind is ListKind.SPACE) for at, key in wish.targets.items()),
        faults=tuple(faults),
    )
    return shown, wanted, replaced


def _imported(key: ListKey, row: Row, pinned: bool, by: str, now: datetime) -> Memory:
    return Memory(
        id=0,
        key=key,
        content=row.content,
        content_hash=content_hash(row.content),
        pinned=pinned,
        protected=pinned,
        origin=Origin.IMPORT.value,
        author_kind="person",
        author_id=by,
        created_at=min(row.created_at, now),
        updated_at=min(row.updated_at, now),
        updated_by=by,
        revision=stored.new_revision(),
        tags=distinct(row.tags),
        channel_ids=distinct(row.channel_ids),
        private_origin=key.kind is not ListKind.SPACE,
        last_tick_day=now.date(),
    )


def _exported(memory: Memory) -> dict[str, Any]:
    return {
        "content": memory.content,
        "pinned": memory.pinned,
        "protected": memory.protected,
        "origin": memory.origin,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "tags": list(memory.tags),
        "channel_ids": list(memory.channel_ids),
    }
