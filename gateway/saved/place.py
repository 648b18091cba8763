"""The place of a reply as saved memories see it: who takes part, which lists are in effect, what may be written (steps 1 and 2 of the turn order)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from gateway.config import Config
from gateway.heads import access_of
from gateway.policy import resolve
from gateway.turn_store import TurnStart
from memory.conversations import Message
from memory.saved import switches
from memory.saved.lists import LEARNING_ON, Where
from memory.saved.policy import OFF, MemoryPolicy
from memory.schema import spaces

_SPACE = sa.select(spaces.c.platform_space_id, spaces.c.server_id).where(spaces.c.id == sa.bindparam("id"))


def policy_of(config: Config, start: TurnStart) -> MemoryPolicy:
    """The row of the matrix, or nothing at all: where memory is off, for who is signed out, in a challenge, and when it is not clear whose memory
    a turn has (SM-11, SM-88, SM-89)."""
    chat = start.conversation
    if access_of(start).scope is None:
        return OFF
    in_space = chat.space_id is not None
    return resolve(config.policies, platform=chat.channel, chat_kind=chat.kind, in_space=in_space, signed_in=bool(start.person.get("id")))


def members_of(start: TurnStart) -> tuple[str, ...]:
    """Ids, in the configuration, of the characters whose lists count beside that of the one who answers: those of a group chat (SM-9)."""
    chat = start.conversation
    return chat.characters if chat.space_id is None and len(chat.characters) > 1 else ()


def where(
    connection: sa.Connection,
    start: TurnStart,
    policy: MemoryPolicy,
    *,
    character: str,
    members: tuple[str, ...],
    participants_max: int,
    now: datetime,
) -> Where:
    """`character`, `members`: lineages. Who speaks here is known from the messages of the live window (SM-10, SM-42)."""
    chat = start.conversation
    window = [*start.history, *start.questions]
    said = [message for message in reversed(window) if message.role == "user" and message.author_person_id]
    today = {message.author_person_id for message in said if message.created_at.date() == now.date()}
    author = _author(start)
    heard = [message.author_person_id for message in said]
    speakers = list(dict.fromkeys([author, *heard] if author else heard))
    participants = switches.participants_of(connection, speakers, space_id=chat.space_id, spoke_today=today)
    return Where(
        policy=policy,
        character=character,
        author=author,
        members=members,
        space=chat.space_id,
        participants=participants,
        participants_max=participants_max,
        channels=channels_of(chat.key),
        open_channel=chat.space_id is None or _is_open(connection, chat.space_id),
        learning=switches.learning_of(connection, speakers, [character, *members]),
        space_learning=switches.space_learning_of(connection, chat.space_id, character) if chat.space_id else LEARNING_ON,
        window=tuple(message.text for message in window),
    )


def channels_of(key: str) -> tuple[str, ...]:
    """The channel of a conversation as row limits name it, then the one that it is a thread of (SM-17). `key`: of the conversation."""
    parts = key.partition("#")[0].split(":")
    return tuple(dict.fromkeys((":".join(parts), ":".join(parts[:3]))))


def source_of(start: TurnStart) -> Mapping[str, object]:
    """Where a row that this turn makes comes from."""
    chat, questions = start.conversation, start.questions
    turn = questions[-1].turn_id if questions else ""
    return {"platform": chat.channel, "chat": chat.id, "turn": turn, "messages": [question.id for question in questions]}


def newest_words(questions: tuple[Message, ...]) -> str:
    """What a person wrote last; empty for a turn that no person's words began (SM-29, SM-30)."""
    return next((question.text for question in reversed(questions) if question.origin == "person"), "")


def _author(start: TurnStart) -> str:
    """Of the message that is answered; in a private chat whoever it belongs to, also when a task of theirs speaks."""
    if start.questions and start.questions[-1].author_person_id:
        return start.questions[-1].author_person_id
    return str(start.person.get("id", "")) if start.conversation.space_id is None else ""


def _is_open(connection: sa.Connection, space_id: str) -> bool:
    """Whether the place is its whole server or group; a channel that not all of a server reads is a space of its own (WD-12, SM-16)."""
    row = connection.execute(_SPACE, {"id": space_id}).one_or_none()
    return row is not None and row.server_id in ("", row.platform_space_id)
