"""Rows and places as values, as small as a test wants them: nothing here touches a database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memory.saved.lists import Learning, Participant, Where
from memory.saved.policy import MemoryPolicy, Notice
from memory.saved.rows import ListKey, Memory, character_list, content_hash, global_list, space_list

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)
ANN, BOB, CID = "p-ann", "p-bob", "p-cid"
YUKI, SORA, NOA = "h-yuki", "h-sora", "h-noa"
DEN, HALL = "s-den", "s-hall"
ROOM, OTHER_ROOM, THREAD = "discord:main:1", "discord:main:2", "discord:main:11"
GLOBAL, MINE, PLACE = global_list(ANN), character_list(ANN, YUKI), space_list(DEN, YUKI)

ON = MemoryPolicy(
    read_rows=True, write_rows=True, ageing=True, head_rows=100, deep_memory=True, dreams=True, chat_summaries=True, notice=Notice.TOAST
)


def row(number: int, text: str = "", key: ListKey = MINE, **more: Any) -> Memory:
    """An unpinned, active row that any place may read."""
    text = text or f"fact {number}"
    values: dict[str, Any] = {
        "id": number, "key": key, "content": text, "content_hash": content_hash(text), "pinned": False, "protected": False, "origin": "tool",
        "author_kind": "model", "author_id": "m", "created_at": NOW, "updated_at": NOW, "updated_by": "m", "revision": f"r{number}",
        "private_origin": False, "last_tick_day": NOW.date(),
    }  # fmt: skip
    return Memory(**(values | more))


def private(person: str = ANN, *, members: tuple[str, ...] = (), spoke_today: bool = True, **more: Any) -> Where:
    values: dict[str, Any] = {
        "policy": ON, "character": YUKI, "author": person, "members": members, "channels": ("web::c-1",),
        "participants": (Participant(person=person, spoke_today=spoke_today),),
    }  # fmt: skip
    return Where(**(values | more))


def shared(*people: Participant, author: str = ANN, space: str = DEN, **more: Any) -> Where:
    values: dict[str, Any] = {
        "policy": ON, "character": YUKI, "author": author, "space": space, "channels": (ROOM,),
        "participants": people or (Participant(person=ANN, spoke_today=True), Participant(person=BOB, spoke_today=True)),
    }  # fmt: skip
    return Where(**(values | more))


def off(person: str, character: str, *, learn: bool = False, use: bool = False) -> Mapping[tuple[str, str], Learning]:
    return {(person, character): Learning(learn=learn, use=use)}


def ids(rows: tuple[Memory, ...] | list[Memory]) -> list[int]:
    return [each.id for each in rows]
