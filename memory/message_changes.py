"""What becomes of messages that are in the log already: edits, deletions, rewinds, newer answers. Plain functions on a `Connection`.

A row stays and changes its state. Whatever was made of its words hears of it in the same transaction: the files of a day, chunks, summaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory import coverage
from memory.conversations import Message, fingerprint, message
from memory.recall import chunk_store, summary_rows
from memory.schema import messages

_LAST_SEQ = 2**62  # beyond every number of the log

_REWIND = (
    sa.update(messages)
    .where(messages.c.conversation_id == sa.bindparam("of"), messages.c.seq >= sa.bindparam("start"), messages.c.state == "live")
    .values(state="hidden")
)
_QUESTION_STATES = sa.select(messages.c.state).where(messages.c.turn_id == sa.bindparam("turn"), messages.c.role == "user").distinct()
_OLD_ANSWERS = (
    sa.update(messages)
    .where(messages.c.turn_id == sa.bindparam("of"), messages.c.role != "user", messages.c.attempt < sa.bindparam("attempt_now"))
    .values(canonical=False)
)
_CANONICAL_ANSWERS = sa.select(messages.c.conversation_id, messages.c.seq).where(
    messages.c.turn_id == sa.bindparam("of"), messages.c.role == "assistant", messages.c.canonical
)


def rewind(connection: sa.Connection, conversation_id: str, start_seq: int) -> int:
    """Take `start_seq` and all after it out of the talk (edit-and-resend); returns how many messages left. The rows stay."""
    _taken_away(connection, conversation_id, start_seq, _LAST_SEQ)
    return connection.execute(_REWIND, {"of": conversation_id, "start": start_seq}).rowcount


def is_withdrawn(connection: sa.Connection, turn_id: str) -> bool:
    """Whether every question of a turn was taken out of the talk by a rewind; one that its author deleted still gets its answer (CH-2)."""
    states = set(connection.execute(_QUESTION_STATES, {"turn": turn_id}).scalars())
    return states == {"hidden"}


def retire_answers(connection: sa.Connection, turn_id: str, attempt: int) -> None:
    """Answers of earlier attempts of this turn are no longer the canonical ones."""
    for row in connection.execute(_CANONICAL_ANSWERS, {"of": turn_id}).all():
        _taken_away(connection, row.conversation_id, row.seq, row.seq)
    connection.execute(_OLD_ANSWERS, {"of": turn_id, "attempt_now": attempt})


def correct(connection: sa.Connection, found: Message, text: str, now: datetime) -> None:
    """The person edited a message: the log says the new words from now on (CH-2)."""
    print_ = fingerprint(found.id, found.role, found.author_person_id, text)
    connection.execute(sa.update(messages).where(messages.c.id == found.id).values(text=text, edited_at=now, fingerprint=print_))
    _changed(connection, found.conversation_id, found.seq, found.seq)


def set_attachments(connection: sa.Connection, message_id: str, files: Iterable[Mapping[str, Any]]) -> None:
    """The files of a message, as they are known now. A message whose words were taken away gets none back."""
    of = (messages.c.id == message_id) & (messages.c.state != "forgotten")
    connection.execute(sa.update(messages).where(of).values(attachments=list(files) or None))
    found = message(connection, message_id)
    if found is not None:  # one of them may have words by now (RS-23)
        chunk_store.mark_stale(connection, found.conversation_id, found.seq, found.seq)


def forget(connection: sa.Connection, message_id: str) -> None:
    """The person deleted a message: its words leave the log, its row stays (CH-2)."""
    found = message(connection, message_id)
    if found is not None:
        connection.execute(sa.update(messages).where(messages.c.id == message_id).values(text="", state="forgotten", attachments=None))
        _taken_away(connection, found.conversation_id, found.seq, found.seq)


def _changed(connection: sa.Connection, conversation_id: str, first: int, last: int, *, forgotten: bool = False) -> None:
    """What was made of messages with these numbers says it no more: files are written anew, chunks are not found, summaries are stale."""
    coverage.mark_stale(connection, conversation_id, first, last)
    chunk_store.mark_stale(connection, conversation_id, first, last)
    summary_rows.mark_changed(connection, conversation_id, first, last, forgotten=forgotten)


def _taken_away(connection: sa.Connection, conversation_id: str, first: int, last: int) -> None:
    _changed(connection, conversation_id, first, last, forgotten=True)
