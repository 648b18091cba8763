"""A saved memory as a value, and the name of the list it stands in (SM-1, section 6 of the rules)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any

import regex

TAG_MAX = 40  # characters of a word tag
TAGS_MOST = 50  # of a row, whatever is configured
CHANNEL_MAX = 300  # characters of the address of a channel
CHANNELS_MAX = 50  # that a row may be limited to

_SURROGATES = re.compile("[\ud800-\udfff]")
_SHOWS_NOTHING = regex.compile(r"[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]*")


class ListKind(StrEnum):
    GLOBAL = "global"
    CHARACTER = "character"
    SPACE = "space"


class Origin(StrEnum):
    PANEL = "panel"
    GENERATE = "generate"
    FROM_CHAT = "from_chat"
    TOOL = "tool"
    DEEP = "deep"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class ListKey:
    """GLOBAL(person), CHARACTER(person, character) or SPACE(space, character). `owner` is a person or, of SPACE, a space; `character` a lineage id,
    empty for GLOBAL."""

    kind: ListKind
    owner: str
    character: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.kind, self.owner, self.character)))

    @classmethod
    def parse(cls, text: str) -> ListKey:
        """The reverse of `str`; ValueError for anything else."""
        kind, _, rest = text.partition(":")
        owner, _, character = rest.partition(":")
        if not owner or (ListKind(kind) is ListKind.GLOBAL) == bool(character):
            raise ValueError(f"no list of memories is called {text!r}")
        return cls(ListKind(kind), owner, character)


def global_list(person: str) -> ListKey:
    return ListKey(ListKind.GLOBAL, person)


def character_list(person: str, character: str) -> ListKey:
    return ListKey(ListKind.CHARACTER, person, character)


def space_list(space: str, character: str) -> ListKey:
    return ListKey(ListKind.SPACE, space, character)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One row with its ageing. Times are aware UTC; `last_tick_day` a UTC date; `source` has platform, chat, turn and messages where known."""

    id: int
    key: ListKey
    content: str
    content_hash: str
    pinned: bool
    protected: bool
    origin: str
    author_kind: str
    author_id: str
    created_at: datetime
    updated_at: datetime
    updated_by: str
    revision: str
    tags: tuple[str, ...] = ()
    channel_ids: tuple[str, ...] = ()
    private_origin: bool = True
    origin_character: str = ""
    archived: bool = False
    source: Mapping[str, Any] | None = None
    unused_days: int = 0
    dormant: bool = False
    last_tick_day: date
    last_matched_at: datetime | None = None


def clean(content: str) -> str:
    """The text as it is stored: NFC, trimmed (SM-3); empty when nothing of it would show. Not checked for its length.

    Not every writer comes through a door that has cleaned its words: a model's call and a file may hold NUL and lone surrogates, which no database
    takes (CH-6).
    """
    text = unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", content.replace("\x00", ""))).strip()
    return "" if _SHOWS_NOTHING.fullmatch(text) else text


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags or channels as they are stored: cleaned, none empty, each once."""
    return tuple(dict.fromkeys(filter(None, map(clean, texts))))


def content_hash(content: str) -> str:
    """Names the vector of exactly this text."""
    return hashlib.sha256(content.encode()).hexdigest()


def norm_hash(content: str) -> str:
    """Equal for texts that say exactly the same: NFKC, case folded, white space collapsed (SM-4)."""
    folded = " ".join(unicodedata.normalize("NFKC", content).casefold().split())
    return hashlib.sha256(folded.encode()).hexdigest()
