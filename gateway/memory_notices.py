"""What a person hears of saved memories that a turn changed: one notice, after the reply, as loud as the chat wants it (SM-61 to SM-63).

It is a step of its own behind the stored reply: one that cannot be told changes no row and no outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from channels.message import Address
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.language import say
from gateway.saved.turn import SavedTurn
from gateway.shapes import message_json
from gateway.streams import Streams
from gateway.turn_store import TurnStart
from memory import conversations
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreError
from memory.saved import journal
from memory.saved.journal import Entry, Op
from memory.saved.lists import Where
from memory.saved.policy import MemoryPolicy, Notice
from memory.saved.visible import visible

log = logging.getLogger(__name__)

TEXT_MAX = 200  # code points of a memory that a full notice shows (SM-61)
SETTING = "memory_notice"  # key of a chat's settings: full, short or hidden instead of what the policy says
_CHOICES = {each.value: each for each in (Notice.FULL, Notice.SHORT, Notice.HIDDEN)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One row that a turn changed. `text`: as it is now, of a row that is gone as it was; empty for a forgotten one that is hidden here (SM-63).
    `entry`: of the journal, for taking it back; `by_person`: a person had made the row."""

    op: Op
    memory_id: int
    text: str
    entry: int
    by_person: bool


def level_of(policy: MemoryPolicy, settings: object) -> Notice:
    """What the chat's own choice says, else the policy; nothing is louder where the policy tells nobody (challenges, signed out)."""
    chosen = _CHOICES.get(str(settings)) if policy.notice is not Notice.NONE else None
    return chosen or policy.notice


def changes(entries: Sequence[Entry], where: Where | None) -> tuple[Changed, ...]:
    """What stands of the work of a turn: the last operation of each row; a row that was made and removed in one turn is nothing."""
    first: dict[int, Entry] = {}
    last: dict[int, Entry] = {}
    for entry in entries:
        if not entry.undone and not entry.void:
            first.setdefault(entry.memory_id, entry)
            last[entry.memory_id] = entry
    found: list[Changed] = []
    for memory_id, entry in last.items():
        made = first[memory_id].op is Op.CREATE
        if made and entry.op in (Op.DELETE, Op.EVICT):
            continue
        row, before = entry.after or entry.before, first[memory_id].before
        hidden = entry.op is Op.EVICT and (row is None or where is None or not visible([row], where))
        found.append(
            Changed(
                op=Op.CREATE if made else entry.op,
                memory_id=memory_id,
                text="" if hidden or row is None else row.content,
                entry=entry.id,
                by_person=entry.op in (Op.UPDATE, Op.DELETE) and before is not None and before.author_kind == "person",
            )
        )
    return tuple(found)


_KEYS = {Op.CREATE: "memory_saved", Op.UPDATE: "memory_changed", Op.DELETE: "memory_deleted", Op.EVICT: "memory_forgotten"}
_COUNT_KEYS = {
    Op.CREATE: "memory_saved_count",
    Op.UPDATE: "memory_changed_count",
    Op.DELETE: "memory_deleted_count",
    Op.EVICT: "memory_forgotten_count",
}


def words(found: Sequence[Changed], level: Notice, language: str) -> str:
    """The notice as a text; empty for none."""
    if not found or level not in (Notice.FULL, Notice.SHORT, Notice.TOAST):
        return ""
    if level is Notice.FULL:
        lines = [_line(each, language) for each in found]
    else:
        counts = {key: sum(each.op is op for each in found) for op, key in _COUNT_KEYS.items()}
        lines = [" · ".join(say(language, key, count=count) for key, count in counts.items() if count)]
    if any(each.by_person for each in found):
        lines.append(say(language, "memory_notice_undo"))
    return "\n".join(lines)


def _line(changed: Changed, language: str) -> str:
    if not changed.text:
        return say(language, "memory_forgotten_hidden")
    text = changed.text if len(changed.text) <= TEXT_MAX else f"{changed.text[: TEXT_MAX - 1]}…"
    return say(language, _KEYS[changed.op], text=text)


def as_json(found: Sequence[Changed]) -> list[dict[str, Any]]:
    """For the page and for the field of an API's result."""
    return [{"op": each.op.value, "id": each.memory_id, "text": each.text, "entry": each.entry, "by_person": each.by_person} for each in found]


class MemoryNotices:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], replies: Replies, streams: Streams) -> None:
        self._db = db
        self._clock = clock
        self._replies = replies
        self._streams = streams

    async def after(self, start: TurnStart, saved: SavedTurn, *, language: str) -> None:
        """Once the reply of a turn is stored. Never raises what the store does."""
        chat = start.conversation
        level = level_of(saved.policy, chat.settings.get(SETTING))
        if not saved.tools or level not in (Notice.FULL, Notice.SHORT, Notice.TOAST):
            return
        try:
            found = changes(await self._db.read(partial(journal.of_writer, writer=saved.writer)), saved.where)
            text = words(found, level, language)
            if text and level is Notice.TOAST:
                event = {"text": text, "level": "info", "turn_id": saved.writer.turn_id, "changes": as_json(found)}
                self._streams.publish(chat.id, "notice", event)
            elif text:
                await self._say(start, saved, text)
        except StoreError as error:
            log.warning("a notice of saved memories could not be told: %s", error)

    async def _say(self, start: TurnStart, saved: SavedTurn, text: str) -> None:
        chat, now = start.conversation, self._clock()
        address = chat.key.removesuffix(f"#{chat.id}")
        part_id = f"memory-{saved.writer.turn_id}.{saved.writer.attempt}"
        reply = self._replies.notice(Address.parse(address), text, part_id=part_id, now=now, conversation_id=chat.id)

        def work(connection: sa.Connection) -> tuple[Message, Reply]:
            outbox_store.put(connection, reply.parts, now)
            message = conversations.add_message(
                connection, now=now, conversation_id=chat.id, turn_id=saved.writer.turn_id, role="notice", origin="notice", text=text,
                attempt=saved.writer.attempt,
            )  # fmt: skip
            return message, reply

        message, reply = await self._db.write(work)
        self._streams.publish(chat.id, "message", message_json(message))
        self._replies.stored(address, reply)
