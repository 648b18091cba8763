"""Who an event is from and where it stands: known people and spaces looked up, new ones made. Never guessed from names (CH-111)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import Address, ChatType, InboundEvent
from gateway.access import Rules, includes
from memory import conversations
from memory.conversations import Conversation
from memory.ids import new_person, new_space
from memory.schema import identities, people, spaces
from memory.scopes import person_scope

NAME_MAX = 80  # characters of a display name that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    id: str
    name: str
    role: str
    blocked: bool
    privacy: str
    language: str
    scope: str


_COLUMNS = [people.c[name] for name in Sender.__dataclass_fields__]
_BY_IDENTITY = (
    sa.select(*_COLUMNS)
    .join(identities, identities.c.person_id == people.c.id)
    .where(
        identities.c.channel == sa.bindparam("channel"),
        identities.c.account == sa.bindparam("account"),
        identities.c.platform_user_id == sa.bindparam("sender"),
    )
)
_BY_PERSON = sa.select(*_COLUMNS).where(people.c.id == sa.bindparam("sender"))
_SPACE = sa.select(spaces.c.id, spaces.c.server_id, spaces.c.title, spaces.c.allowed, spaces.c.mention).where(
    spaces.c.channel == sa.bindparam("channel"),
    spaces.c.account == sa.bindparam("account"),
    spaces.c.platform_space_id == sa.bindparam("space"),
)


def find(connection: sa.Connection, event: InboundEvent, *, are_people: bool) -> Sender | None:
    """The person an event is from, or None for a stranger. `are_people`: the channel's sender ids are person ids, proven by signing in."""
    if are_people:
        row = connection.execute(_BY_PERSON, {"sender": event.sender_id}).one_or_none()
    else:
        identity = {"channel": event.account.channel, "account": event.account.name, "sender": event.sender_id}
        row = connection.execute(_BY_IDENTITY, identity).one_or_none()
    return Sender(**row._mapping) if row else None  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name


def meet(connection: sa.Connection, event: InboundEvent, *, now: datetime) -> Sender:
    """A new identity makes a new person, a guest: what the configuration's lists give is never stored, so that it ends with them (CH-121)."""
    name = event.sender_name[:NAME_MAX]
    person_id = new_person()
    person = Sender(id=person_id, name=name, role="guest", blocked=False, privacy="", language="", scope=str(person_scope(person_id)))
    connection.execute(sa.insert(people), {"id": person.id, "name": name, "role": person.role, "scope": person.scope, "created_at": now})
    connection.execute(sa.insert(identities), {
        "person_id": person.id, "channel": event.account.channel, "account": event.account.name,
        "platform_user_id": event.sender_id, "name": name, "created_at": now,
    })  # fmt: skip
    return person


def role_of(sender: Sender | None, *, listed: bool) -> str:
    """The role now: the stored one, and at least `user` while the configuration lists the id; empty for a stranger."""
    stored = sender.role if sender else ""
    return "user" if listed and not includes(stored, "user") else stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What was settled here about a group. `mention`: on, off, or empty for what its account says (CH-116)."""

    allowed: bool = False
    mention: str = ""


def place_of(connection: sa.Connection, event: InboundEvent) -> Place:
    row = space_of(connection, event)
    return Place(allowed=row.allowed, mention=row.mention) if row is not None else Place()


def lost_access(connection: sa.Connection, address: Address, rules: Rules) -> bool:
    """Whether nobody in a chat may be written to any more: its person was blocked or is no longer admitted, its group no longer allowed (CH-83)."""
    chat = conversations.conversation_by_key(connection, str(address))
    if chat is None:
        return False
    if chat.space_id is not None:
        query = sa.select(spaces.c.platform_space_id, spaces.c.server_id, spaces.c.allowed).where(spaces.c.id == chat.space_id)
        space = connection.execute(query).one()
        return not (space.allowed or rules.admits_group(space.platform_space_id, space.server_id, address.chat_id))
    person = by_id(connection, chat.person_id or "")
    if person is None or person.blocked:
        return True
    here = (identities.c.channel == address.account.channel) & (identities.c.account == address.account.name)
    ids = connection.execute(sa.select(identities.c.platform_user_id).where(identities.c.person_id == person.id, here)).scalars()
    return not includes(role_of(person, listed=any(map(rules.admits, ids))), "user")


def open_chat(connection: sa.Connection, event: InboundEvent, *, person_id: str, now: datetime) -> Conversation:
    """A new conversation: a direct chat belongs to its person, a group to its space, which is made with its first admitted message."""
    is_dm = event.chat_type is ChatType.DM
    new_id = conversations.create_conversation(
        connection,
        now=now,
        key=str(event.address),
        channel=event.account.channel,
        account=event.account.name,
        kind="dm" if is_dm else "group",
        person_id=person_id if is_dm else None,
        space_id=None if is_dm else _space_id(connection, event, now),
    )
    opened = conversations.conversation(connection, new_id)
    if opened is None:
        raise LookupError(new_id)
    return opened


def in_its_space(connection: sa.Connection, event: InboundEvent, chat: Conversation, now: datetime) -> Conversation:
    """A group as it is now: a channel that was opened to its whole server writes to the server's memory from then on, one that was closed to its own;
    what was kept before stays where it is (WD-12)."""
    if event.chat_type is ChatType.DM or chat.space_id is None:
        return chat
    space_id = _space_id(connection, event, now)
    if space_id == chat.space_id:
        return chat
    conversations.change(connection, chat.id, space_id=space_id)
    return replace(chat, space_id=space_id)


def _space_id(connection: sa.Connection, event: InboundEvent, now: datetime) -> str:
    row = space_of(connection, event)
    if row is None:
        space_id = new_space()
        connection.execute(sa.insert(spaces), {
            "id": space_id, "channel": event.account.channel, "account": event.account.name, "platform_space_id": _shared_place(event),
            "server_id": event.space_id, "created_at": now,
        })  # fmt: skip
        return space_id
    if row.server_id != event.space_id:
        connection.execute(sa.update(spaces).where(spaces.c.id == row.id).values(server_id=event.space_id))
    return row.id


def _shared_place(event: InboundEvent) -> str:
    """The platform's id of the place whose members share one memory: a server, for its open channels; else the group, channel or private thread. A
    topic or a thread that others may find is part of what it hangs on (WD-12)."""
    return event.shared_id or event.parent_chat_id or event.chat_id


def space_of(connection: sa.Connection, event: InboundEvent) -> sa.Row[Any, Any, Any, Any, Any] | None:
    """The row of the space that an event belongs to; None before its first admitted message."""
    where = {"channel": event.account.channel, "account": event.account.name, "space": _shared_place(event)}
    return connection.execute(_SPACE, where).one_or_none()


def by_id(connection: sa.Connection, person_id: str) -> Sender | None:
    row = connection.execute(_BY_PERSON, {"sender": person_id}).one_or_none()
    return Sender(**row._mapping) if row else None  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
