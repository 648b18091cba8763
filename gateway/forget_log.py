"""What is forgotten leaves the log too, where the person asks for it: messages, what arrived and was sent, blocks, titles of chats (WD-92)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from gateway import titles, trimming
from gateway.arrivals import inbox
from gateway.delivery.rules import OPEN
from memory import conversations, message_changes
from memory.forget_match import Held
from memory.recall import chunk_store, summary_rows
from memory.schema import conversations as chats
from memory.schema import inbox as arrivals
from memory.schema import jobs, messages, outbox

_CHATS = sa.select(messages.c.conversation_id).where(messages.c.scope == sa.bindparam("scope")).distinct()
_TITLES = sa.select(chats.c.id, chats.c.title).where(chats.c.id.in_(_CHATS), chats.c.title_origin != "")  # a group's is its platform's
_SEQS = sa.select(messages.c.conversation_id, messages.c.seq).where(messages.c.id.in_(sa.bindparam("ids", expanding=True)))
_SENT = outbox.c.state.not_in([state.value for state in OPEN])
_ANSWERS = sa.select(outbox.c.id, outbox.c.part).where(outbox.c.kind == "answer", outbox.c.turn_id == sa.bindparam("of"), _SENT)
_NOTICES = sa.select(outbox.c.id, outbox.c.part).where(
    outbox.c.kind != "answer",
    outbox.c.delivery_id.in_(sa.select(arrivals.c.delivery_id).where(arrivals.c.message_id == sa.bindparam("of"))),
    _SENT,
)


def take(connection: sa.Connection, message_id: str) -> None:
    """The words of one message: from the log, from what arrived, and from what was sent for it. What is still to be sent goes as it is."""
    found = conversations.message(connection, message_id)
    if found is None:
        return
    message_changes.forget(connection, message_id)
    inbox.forget_words(connection, message_id)
    ours = found.role == "assistant" and bool(found.turn_id)
    for row in connection.execute(_ANSWERS if ours else _NOTICES, {"of": found.turn_id if ours else message_id}).all():
        connection.execute(sa.update(outbox).where(outbox.c.id == row.id).values(part={**row.part, "text": ""}))


def make_blocks_anew(connection: sa.Connection, message_ids: Iterable[str], now: datetime) -> None:
    """What stands for talk with these messages in it, in the context, in summaries, for recall: it may say in other words what they said."""
    for row in connection.execute(_SEQS, {"ids": list(message_ids)}).all():
        trimming.changed(connection, row.conversation_id, row.seq, row.seq, now)
        chunk_store.mark_stale(connection, row.conversation_id, row.seq, row.seq)
        summary_rows.mark_changed(connection, row.conversation_id, row.seq, row.seq, forgotten=True)


def titles_with(connection: sa.Connection, scope: str, held: Held) -> dict[str, str]:
    """The titles that hold it, of chats of this scope, by the chat."""
    return {row.id: row.title for row in connection.execute(_TITLES, {"scope": scope}) if held.in_text(row.title)}


def clear_titles(connection: sa.Connection, scope: str, held: Held) -> int:
    """Chats whose title holds it have none until the next turn; how many."""
    named = titles_with(connection, scope, held)
    for chat_id in named:
        conversations.change(connection, chat_id, title="", title_origin="")
        connection.execute(sa.update(jobs).where(jobs.c.kind == titles.KIND, jobs.c.key == chat_id).values(result=sa.null()))
    return len(named)
