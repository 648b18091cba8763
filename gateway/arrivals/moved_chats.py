"""A group that got another id, as when a Telegram group grows: everything kept under the old one follows, in one transaction (CH-166, WD-13).
And a topic that is gone: what was to be said there is said in its chat.

Either is told by an event of the platform or learned from a send, more than once and in any order; repeating it changes nothing.
Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import Account, Address
from gateway import joining, link_files
from gateway.access import Rules
from gateway.delivery import outbox_store
from gateway.language import guess, say
from memory import conversations, tasks, whole_conversations
from memory.columns import metadata
from memory.ids import SpaceId
from memory.schema import conversations as chats
from memory.schema import messages, spaces
from memory.scopes import space_scope

_SPACE = sa.select(spaces).where(
    spaces.c.channel == sa.bindparam("channel"),
    spaces.c.account == sa.bindparam("account"),
    spaces.c.platform_space_id == sa.bindparam("space"),
)
_NEWEST_WORDS = (
    sa.select(messages.c.text)
    .join(chats, chats.c.id == messages.c.conversation_id)
    .where(chats.c.space_id.in_(sa.bindparam("spaces", expanding=True)), messages.c.role == "user")
    .order_by(messages.c.seq.desc())
    .limit(1)
)


def follow(connection: sa.Connection, *, old: Address, new_chat_id: str, rules: Rules | None, now: datetime) -> None:
    """Re-key a chat with its topics, its space, its tasks and what waits to be sent there. `rules`: whom the account admits, None when there is no
    such account: its list knows the old id only, so the space itself is allowed from now on.

    The references to platform messages stay: message ids of the new chat begin anew and would meet the old ones.
    """
    if new_chat_id == old.chat_id:
        return
    before, after = str(replace(old, thread_id="")), str(replace(old, chat_id=new_chat_id, thread_id=""))
    for key in whole_conversations.keys_of_chat(connection, before):
        whole_conversations.move(connection, old=key, new=f"{after}{key.removeprefix(before)}")
    outbox_store.readdress(connection, before, new_chat_id)
    tasks.readdress(connection, before, after, now)
    space_id = _move_space(connection, old.account, old=old.chat_id, new=new_chat_id, now=now)
    if space_id and rules is not None and rules.admits_group(old.chat_id):
        connection.execute(sa.update(spaces).where(spaces.c.id == space_id).values(allowed=True))


def leave_topic(connection: sa.Connection, topic: Address, now: datetime) -> None:
    """The topic exists no longer: what waits to be sent there, and its tasks, go to the chat itself, and its talk is put aside (section 5, SC-12)."""
    key, chat_key = str(topic), str(replace(topic, thread_id=""))
    if key == chat_key:
        return
    outbox_store.leave_topic(connection, key)
    talk = conversations.conversation_by_key(connection, key)
    if talk is None:
        return
    if tasks.speaks_in(connection, key) and conversations.conversation_by_key(connection, chat_key) is None:
        conversations.create_conversation(
            connection, now=now, key=chat_key, channel=talk.channel, account=talk.account, kind=talk.kind, person_id=talk.person_id,
            space_id=talk.space_id, character=talk.character,
        )  # fmt: skip
    tasks.readdress(connection, key, chat_key, now)
    conversations.rekey(connection, old=key, new=f"{key}#{talk.id}")


def _move_space(connection: sa.Connection, account: Account, *, old: str, new: str, now: datetime) -> str:
    """The group keeps its space, and so its memory and its managers; one begun under the new id meanwhile joins it. Returns the id, or ""."""
    ids = {"channel": account.channel, "account": account.name}
    earlier = connection.execute(_SPACE, ids | {"space": old}).one_or_none()
    present = connection.execute(_SPACE, ids | {"space": new}).one_or_none()
    if earlier is None:
        return present.id if present else ""
    settled: dict[str, Any] = {"platform_space_id": new}
    if present is not None:
        settled |= {"allowed": earlier.allowed or present.allowed, "mention": earlier.mention or present.mention}
        _join_spaces(connection, keep=earlier.id, gone=present.id, now=now)
    connection.execute(sa.update(spaces).where(spaces.c.id == earlier.id).values(settled))
    return earlier.id


def _join_spaces(connection: sa.Connection, *, keep: SpaceId, gone: SpaceId, now: datetime) -> None:
    language = guess(connection.execute(_NEWEST_WORDS, {"spaces": [keep, gone]}).scalar() or "")
    for column in _naming_spaces():
        _repoint(connection, column, keep=keep, gone=gone)
    scopes = {"keep": str(space_scope(keep)), "gone": str(space_scope(gone))}
    joining.join_scopes(connection, **scopes)
    connection.execute(sa.delete(spaces).where(spaces.c.id == gone))
    link_files.order(connection, **scopes, heading=say(language, "moved_heading", date=f"{now:%Y-%m-%d}"))


def _naming_spaces() -> Iterator[sa.Column[Any]]:
    """Every column that refers to a space: managers, chats, saved memories and their switches."""
    for table in metadata.sorted_tables:
        yield from (column for column in table.columns if any(key.column is spaces.c.id for key in column.foreign_keys))


def _repoint(connection: sa.Connection, column: sa.Column[Any], *, keep: str, gone: str) -> None:
    """Where a space has one row for each of something, the kept space's own counts."""
    table, of_gone = column.table, column == gone
    others = [each for each in table.primary_key.columns if each is not column]
    if column.primary_key and others:
        own = table.alias()
        taken = sa.exists().where(own.c[column.name] == keep, *(own.c[each.name] == each for each in others))
        connection.execute(sa.delete(table).where(of_gone, taken))
    connection.execute(sa.update(table).where(of_gone).values({column: keep}))
