"""Messages that a person picked out of one private chat of their own, to save memories from (SM-58, SM-59)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from memory import conversations
from memory.conversations import SPOKEN, Conversation, Message
from memory.saved.lineages import lineages
from memory.saved.rows import ListKey, ListKind
from memory.saved.switches import learning_of

PICKED_MAX = 20


class Refusal(StrEnum):
    """Why these messages cannot be saved from."""

    UNKNOWN = "unknown"  # no such chat of theirs, or not private
    NUMBER = "number"  # none, or more than PICKED_MAX
    SYSTEM_LINE = "system_line"  # a notice, a command, or a message that is gone
    CHALLENGE = "challenge"
    LEARNING_OFF = "learning_off"
    LIST = "list"  # what was said in private goes to a list of one's own


class NotPicked(Exception):
    def __init__(self, why: Refusal) -> None:
        super().__init__(why.value)
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """In the order in which they were said."""

    chat: Conversation
    messages: tuple[Message, ...]


def picked(connection: sa.Connection, person_id: str, chat_id: str, message_ids: Sequence[str], key: ListKey) -> Picked:
    """The messages, checked again at every step, for a chat changes between picking and saving. Raises NotPicked."""
    chat = conversations.conversation(connection, chat_id)
    if chat is None or chat.person_id != person_id or chat.space_id is not None:
        raise NotPicked(Refusal.UNKNOWN)
    if chat.kind == "challenge":
        raise NotPicked(Refusal.CHALLENGE)
    if key.kind is ListKind.SPACE:
        raise NotPicked(Refusal.LIST)
    different = dict.fromkeys(message_ids)
    if not 1 <= len(different) <= PICKED_MAX:
        raise NotPicked(Refusal.NUMBER)
    character = key.character or lineages(connection).get(chat.character, "")
    switch = learning_of(connection, [person_id], [character]).get((person_id, character))
    if switch is not None and not switch.learn:
        raise NotPicked(Refusal.LEARNING_OFF)
    found = [message for each in different if (message := conversations.message(connection, each)) is not None]
    mine = [message for message in found if message.conversation_id == chat.id]
    if len(mine) < len(different):
        raise NotPicked(Refusal.UNKNOWN)
    if any(message.state != "live" or message.origin not in SPOKEN or message.role not in ("user", "assistant") for message in mine):
        raise NotPicked(Refusal.SYSTEM_LINE)
    return Picked(chat=chat, messages=tuple(sorted(mine, key=lambda message: message.seq)))


def packed(texts: Sequence[str], *, length: int, pieces: int) -> list[str] | None:
    """The texts word for word in at most `pieces` drafts of at most `length` code points, cut only between messages; None when they do not fit
    (SM-59). Blank messages are left out."""
    drafts: list[str] = []
    for text in filter(None, (each.strip() for each in texts)):
        if len(text) > length:
            return None
        if drafts and len(drafts[-1]) + 1 + len(text) <= length:
            drafts[-1] = f"{drafts[-1]}\n{text}"
        else:
            drafts.append(text)
    return drafts if len(drafts) <= pieces else None
