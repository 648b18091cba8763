"""Whole conversations: joined to another when their chat has a new address, copied, deleted. Plain functions on a `Connection`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from memory import conversations as log
from memory import schema
from memory.conversations import Conversation
from memory.file_schema import coverage, summary_blocks
from memory.ids import ConversationId, new_message, new_turn
from memory.recall import chunk_store
from memory.recall_schema import summaries
from memory.saved_schema import memory_journal
from memory.schema import conversations, message_refs, messages, turns


def keys_of_chat(connection: sa.Connection, key: str) -> list[str]:
    """The keys of the conversations of one chat: its own, and those of its topics."""
    like = conversations.c.key.startswith(f"{key}:", autoescape=True)
    found = connection.execute(sa.select(conversations.c.key).where((conversations.c.key == key) | like)).scalars()
    return [each for each in found if each == key or each.startswith(f"{key}:")]  # SQLite compares without regard to case


def move(connection: sa.Connection, *, old: str, new: str) -> None:
    """The chat of a conversation has another address now (CH-166). Where the new one is in use already, the earlier talk goes before it."""
    earlier, present = log.conversation_by_key(connection, old), log.conversation_by_key(connection, new)
    if earlier is None:
        return
    if present is None:
        log.rekey(connection, old=old, new=new)
        return
    chunk_store.drop_all(connection, earlier.id)  # made anew where the messages are
    for table in (messages, turns, coverage, summary_blocks, summaries, memory_journal):
        connection.execute(sa.update(table).where(table.c.conversation_id == earlier.id).values(conversation_id=present.id))
    log.move_edge(connection, present.id, earlier.window_edge)
    log.change_settings(connection, present.id, {log.CLEARED: max(log.cleared(earlier), log.cleared(present)) or None})


def delete(connection: sa.Connection, conversation_id: str) -> None:
    """The conversation with its messages and turns, for good."""
    of = conversation_id
    chunk_store.drop_all(connection, of)
    connection.execute(sa.delete(message_refs).where(message_refs.c.message_id.in_(sa.select(messages.c.id).where(messages.c.conversation_id == of))))
    for table in (messages, turns, schema.outbox, memory_journal):
        connection.execute(sa.delete(table).where(table.c.conversation_id == of))
    # The keys of the inbox stay, so that nothing is answered again; its words go.
    connection.execute(sa.update(schema.inbox).where(schema.inbox.c.conversation_id == of).values(conversation_id="", event=None))
    connection.execute(sa.update(schema.model_calls).where(schema.model_calls.c.conversation_id == of).values(conversation_id=""))
    connection.execute(sa.delete(conversations).where(conversations.c.id == of))


def fork(connection: sa.Connection, source: Conversation, *, key: str, new_id: ConversationId, up_to_seq: int, title: str, now: datetime) -> None:
    """A new conversation, set as its source, with copies of everything shown up to `up_to_seq`; saved memory is shared, not copied (SM-1). A fork of
    a challenge is one too, with as many turns left (SM-88)."""
    log.create_conversation(
        connection, now=now, key=key, conversation_id=new_id, channel=source.channel, account=source.account, kind=source.kind,
        person_id=source.person_id, character=source.character, characters=source.characters, title=title, forked_from=source.id,
        challenge=source.challenge, turns_left=source.turns_left,
    )  # fmt: skip
    log.change(
        connection, new_id, memory_on=source.memory_on, persona=source.persona, profile=source.profile, timezone=source.timezone, busy=source.busy,
        mode=source.mode, record=source.record, recall_on=source.recall_on, settings=dict(source.settings) or None,
    )  # fmt: skip
    copied = connection.execute(
        sa.select(messages).where(messages.c.conversation_id == source.id, messages.c.seq <= up_to_seq, log.SHOWN).order_by(messages.c.seq)
    ).all()
    edge = 0
    numbers: dict[int, int] = {}
    turn_ids: defaultdict[str, str] = defaultdict(new_turn)
    for row in copied:
        values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # SQLAlchemy's public name
        old_seq = values.pop("seq")
        values |= {"id": new_message(), "conversation_id": new_id, "turn_id": turn_ids[values["turn_id"]]}
        numbers[old_seq] = seq = log.put(connection, values, now)
        edge = seq if old_seq <= source.window_edge else edge
    log.move_edge(connection, new_id, edge)
    empty = max((seq for old_seq, seq in numbers.items() if old_seq <= log.cleared(source)), default=None)
    log.change_settings(connection, new_id, {log.CLEARED: empty, log.JUMPED: None})
    if numbers:
        _copy_summaries(connection, source, new_id, numbers, now)


def _copy_summaries(connection: sa.Connection, source: Conversation, new_id: str, numbers: Mapping[int, int], now: datetime) -> None:
    """What stands for turns that left the talk stands in its copy too; and no day is told twice what was copied (WD-50)."""
    for block in connection.execute(sa.select(summary_blocks).where(summary_blocks.c.conversation_id == source.id)).all():
        inside = [seq for old, seq in numbers.items() if block.first_seq <= old <= block.last_seq]
        if inside and block.last_seq <= max(numbers):
            connection.execute(sa.insert(summary_blocks), {
                "conversation_id": new_id, "first_seq": min(inside), "last_seq": max(inside), "kind": block.kind, "text": block.text,
                "created_at": now, "updated_at": now,
            })  # fmt: skip
    connection.execute(sa.insert(coverage), {
        "conversation_id": new_id, "scope": "", "first_seq": min(numbers.values()), "last_seq": max(numbers.values()), "local_date": "",
        "section": "copied", "created_at": now,
    })  # fmt: skip
