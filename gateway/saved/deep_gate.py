"""Whether deep memory runs in a chat, for the queue, the run and the badge alike (SM-79, SM-85), and its job (SM-80, SM-84).

A block that leaves the context is what starts it, in the transaction in which it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.jobs.table import Job, enqueue
from memory.conversations import Conversation
from memory.saved.lineages import lineages
from memory.saved.lists import LEARNING_ON
from memory.saved.switches import learning_of
from memory.schema import people

KIND = "deep-memory"

_PERSON = sa.select(people.c.subscriber_until, people.c.blocked).where(people.c.id == sa.bindparam("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """`learning`: of one of the chat's characters at least, in a chat that remembers."""

    signed_in: bool
    subscribed: bool
    web: bool
    challenge: bool
    learning: bool

    @property
    def is_open(self) -> bool:
        return self.signed_in and self.subscribed and self.web and not self.challenge and self.learning


def gate_of(connection: sa.Connection, chat: Conversation, now: datetime) -> Gate:
    """As things are now. The chat is its person's; a subscription counts to the end of its last day, in UTC."""
    row = connection.execute(_PERSON, {"id": chat.person_id or ""}).one_or_none()
    until = row.subscriber_until if row is not None else None
    return Gate(
        signed_in=row is not None and not row.blocked,
        subscribed=until is not None and until >= now.date(),
        web=chat.channel == "web" and chat.kind in ("web", "challenge"),
        challenge=chat.kind == "challenge",
        learning=chat.memory_on and bool(learners(connection, chat)),
    )


def learners(connection: sa.Connection, chat: Conversation) -> tuple[str, ...]:
    """Ids, in the configuration, of the characters of a private chat that may learn from it."""
    known = lineages(connection)
    switches = learning_of(connection, [chat.person_id or ""], [known[each] for each in chat.members if each in known])
    return tuple(each for each in chat.members if switches.get((chat.person_id or "", known.get(each, "")), LEARNING_ON).learn)


def queue(connection: sa.Connection, chat: Conversation, scope: str, last: int, now: datetime) -> None:
    """The block that ends with message number `last` has left the context: read it, once for ever (SM-84)."""
    if gate_of(connection, chat, now).is_open:
        enqueue(connection, Job(kind=KIND, key=f"{chat.id}:{last}", scope=scope, payload={"conversation": chat.id, "last": last}))
