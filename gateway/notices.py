"""Sentences that nobody asked for, to the person of a memory: how a dream went, what cannot be written (WD-23, WD-78).

They go to the private chat that person used last; of a space, to the owner's. Stored in the transaction that makes them necessary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.followups import Told, Wanted, await_results
from gateway.job_store import JobRow
from gateway.language import guess, say
from memory.conversations import last_words
from memory.schema import conversations, people
from memory.scopes import ROOT, Kind, parse_scope

WHAT = "notice"

_CHAT = (
    sa.select(conversations.c.id, people.c.language)
    .join(people, people.c.id == conversations.c.person_id)
    .where(
        people.c.scope == sa.bindparam("scope"),
        sa.not_(people.c.blocked),
        conversations.c.kind.in_(["dm", "web"]),
        conversations.c.deleted_at.is_(None),
        conversations.c.key.not_like(sa.literal("%#") + conversations.c.id),  # put aside by `/new`
    )
    .order_by(conversations.c.updated_at.desc())
    .limit(1)
)


def tell(connection: sa.Connection, scope: str, key: str, values: Mapping[str, object], *, once: str, now: datetime) -> bool:
    """Say `key` with `values` to the person of `scope`. `once`: the same never twice. False when they have no private chat with us."""
    whose = str(ROOT) if parse_scope(scope).kind is Kind.SPACE else scope
    chat = connection.execute(_CHAT, {"scope": whose}).one_or_none()
    if chat is None:
        return False
    said = {name: value if isinstance(value, int | float) else str(value) for name, value in values.items()}
    language = chat.language or guess(last_words(connection, chat.id))
    wanted = Wanted(what=WHAT, conversation_id=chat.id, language=language, values={"key": key, "values": said})
    await_results(connection, [], wanted, scope=scope, key=f"{WHAT}:{once}", now=now)
    return True


def tell_here(connection: sa.Connection, conversation_id: str, scope: str, text: str, *, once: str, language: str, now: datetime) -> None:
    """Say a sentence in this chat, after what is being stored there."""
    wanted = Wanted(what=WHAT, conversation_id=conversation_id, language=language, values={"text": text})
    await_results(connection, [], wanted, scope=scope, key=f"{WHAT}:{once}", now=now)


async def words(wanted: Wanted, _rows: Sequence[JobRow]) -> Told:
    if "text" in wanted.values:
        return Told(text=wanted.values["text"])
    values: dict[str, Any] = wanted.values["values"]
    return Told(text=say(wanted.language, wanted.values["key"], **values))
