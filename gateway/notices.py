"""Sentences that nobody asked for, to the person of a memory: how a dream went, what cannot be written (WD-23, WD-78).

They go to the private chat that person used last; of a space, to the owner's. Stored in the transaction that makes them necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway.buttons import Question
from gateway.followups import Told, Wanted, await_results
from gateway.jobs.table import JobRow
from gateway.language import guess, say
from memory.conversations import last_words
from memory.schema import conversations, people
from memory.scopes import ROOT, Kind, parse_scope

WHAT = "notice"

_CHAT = (
    sa.select(conversations.c.id, conversations.c.person_id, people.c.language)
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


def nothing(_language: str) -> None:
    """Nothing to be answered by a button."""


def tell(
    connection: sa.Connection,
    scope: str,
    key: str,
    values: Mapping[str, object],
    *,
    once: str,
    now: datetime,
    ask: Callable[[str], Question | None] = nothing,
) -> bool:
    """Say `key` with `values` to the person of `scope`. `once`: the same never twice. `ask`: what they can answer by a button, in a language. False
    when they have no private chat with us."""
    whose = str(ROOT) if parse_scope(scope).kind is Kind.SPACE else scope
    chat = connection.execute(_CHAT, {"scope": whose}).one_or_none()
    if chat is None:
        return False
    said = {name: value if isinstance(value, int | float) else str(value) for name, value in values.items()}
    language = chat.language or guess(last_words(connection, chat.id))
    wanted = Wanted(
        what=WHAT, conversation_id=chat.id, language=language, values={"key": key, "values": said} | _asking(ask(language), chat.person_id)
    )
    await_results(connection, [], wanted, scope=scope, key=f"{WHAT}:{once}", now=now)
    return True


def tell_here(
    connection: sa.Connection,
    conversation_id: str,
    scope: str,
    text: str,
    *,
    once: str,
    language: str,
    now: datetime,
    question: Question | None = None,
    person: str = "",
) -> None:
    """Say a sentence in this chat, after what is being stored there. `question`: what `person` can answer to it by a button."""
    values = {"text": text} | _asking(question, person)
    wanted = Wanted(what=WHAT, conversation_id=conversation_id, language=language, values=values)
    await_results(connection, [], wanted, scope=scope, key=f"{WHAT}:{once}", now=now)


def _asking(question: Question | None, person: str) -> dict[str, Any]:
    return {} if question is None else {"question": question.as_json(), "person": person}


async def words(wanted: Wanted, _rows: Sequence[JobRow]) -> Told:
    asked = wanted.values.get("question")
    questions, person = ((Question.of_json(asked),), str(wanted.values["person"])) if asked else ((), "")
    if "text" in wanted.values:
        return Told(text=wanted.values["text"], questions=questions, person=person)
    values: dict[str, Any] = wanted.values["values"]
    return Told(text=say(wanted.language, wanted.values["key"], **values), questions=questions, person=person)
