"""The real messages of a chat as recall and summaries read them: what people said and what was answered, nothing else (RS-16, RS-23).

The same talk counts as for the files of a memory (`memory.coverage.COUNTS`): none of challenge chats, of chats without memory, of people who keep
out. Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from memory import conversations
from memory.coverage import COUNTS
from memory.forgotten import forgotten_messages
from memory.recall.audiences import audience_key
from memory.recall.chunks import Spoken
from memory.recall_schema import chunk_messages
from memory.schema import messages


def uncut(connection: sa.Connection, conversation_id: str, *, after: int = 0) -> list[Spoken]:
    """Real messages with higher numbers than `after` that are in no chunk, in order."""
    return _spoken(connection, connection.execute(_UNCUT, {"of": conversation_id, "after": after}).all())


def behind_newest(connection: sa.Connection, conversation_id: str, count: int) -> int:
    """The number of the newest message that has `count` newer ones in its chat; 0 for none."""
    return connection.execute(_BEHIND, {"of": conversation_id, "count": count}).scalar_one_or_none() or 0


def by_seq(connection: sa.Connection, conversation_id: str, seqs: Collection[int]) -> list[Spoken]:
    """Those of these messages that still count, as they read now, in order (RS-22), with a mark where something between them was forgotten."""
    if not seqs:
        return []
    rows = connection.execute(_BY_SEQ, {"of": conversation_id, "seqs": list(seqs)}).all()
    found = _spoken(connection, rows)
    holes = _forgotten_between(connection, conversation_id, found, {row.scope for row in rows}) if len(found) > 1 else []
    return [
        replace(message, gap=before is not None and any(before.seq < hole < message.seq for hole in holes))
        for before, message in zip([None, *found], found, strict=False)
    ]


def between(connection: sa.Connection, conversation_id: str, first: int, last: int) -> list[Spoken]:
    """The real messages with numbers `first` to `last`."""
    return _spoken(connection, connection.execute(_BETWEEN, {"of": conversation_id, "first": first, "last": last}).all())


def with_work(connection: sa.Connection, least: int) -> list[str]:
    """Chats with at least `least` real messages that are in no chunk."""
    return list(connection.execute(_WITH_WORK, {"least": least}).scalars())


def _forgotten_between(connection: sa.Connection, conversation_id: str, found: Sequence[Spoken], scopes: Collection[str]) -> list[int]:
    """Numbers of messages among these, of the same audience, whose words were forgotten or that something forgotten rested on."""
    gone = frozenset[str]().union(*(forgotten_messages(connection, scope) for scope in scopes))
    rows = connection.execute(
        _SAID if gone else _SAID.where(_C.state == "forgotten"), {"of": conversation_id, "first": found[0].seq, "last": found[-1].seq}
    )
    return [
        row.seq
        for row in rows
        if (row.state == "forgotten" or row.id in gone) and audience_key(row.audience_people, row.audience_personas) == found[0].audience
    ]


def _spoken(connection: sa.Connection, rows: Sequence[Any]) -> list[Spoken]:
    gone = {scope: forgotten_messages(connection, scope) for scope in {row.scope for row in rows}}
    return [
        Spoken(
            seq=row.seq,
            id=row.id,
            at=row.created_at,
            speaker=row.author_name,
            text=_words(row.text, row.attachments),
            fingerprint=conversations.fingerprint(row.id, row.role, row.author_person_id or row.author_character, _told(row)),
            audience=audience_key(row.audience_people, row.audience_personas),
        )
        for row in rows
        if row.id not in gone[row.scope] and _words(row.text, row.attachments)
    ]


def _words(text: str, attachments: Sequence[Mapping[str, Any]] | None) -> str:
    """What was said, with voice notes and readable text files; pictures and their captions of ours stay out (RS-23)."""
    return "\n".join(filter(None, (text.strip(), *words_of(attachments))))


def words_of(attachments: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """What the files of a message say: notes as they were heard, text files as they were read."""
    return [str(said) for each in attachments or () for said in (each.get("transcript"), each.get("words")) if said]


def _told(row: Any) -> str:
    """All that a message says, and who says it."""
    return "\x1f".join((row.author_name, row.text, *words_of(row.attachments)))


_C = messages.c
_FIELDS = (
    _C.seq, _C.id, _C.role, _C.scope, _C.author_person_id, _C.author_character, _C.author_name, _C.text, _C.attachments, _C.audience_people,
    _C.audience_personas, _C.created_at,
)  # fmt: skip
_OF = _C.conversation_id == sa.bindparam("of", type_=sa.Text)
_FREE = ~sa.exists().where(chunk_messages.c.message_seq == _C.seq)
_TALK = sa.select(*_FIELDS).where(_OF, COUNTS).order_by(_C.seq)
_UNCUT = _TALK.where(_C.seq > sa.bindparam("after", type_=sa.BigInteger), _FREE)
_BEHIND = sa.select(_C.seq).where(_OF).order_by(_C.seq.desc()).offset(sa.bindparam("count", type_=sa.Integer)).limit(1)
_BY_SEQ = _TALK.where(_C.seq.in_(sa.bindparam("seqs", type_=sa.BigInteger, expanding=True)))
_BETWEEN = _TALK.where(_C.seq.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger)))
_SAID = sa.select(_C.seq, _C.id, _C.state, _C.audience_people, _C.audience_personas).where(
    _OF, _C.seq.between(sa.bindparam("first", type_=sa.BigInteger), sa.bindparam("last", type_=sa.BigInteger)), _C.canonical,
    _C.origin.in_(conversations.SPOKEN),
)  # fmt: skip
_WITH_WORK = (
    sa.select(_C.conversation_id)
    .where(COUNTS, _FREE)
    .group_by(_C.conversation_id)
    .having(sa.func.count() >= sa.bindparam("least", type_=sa.Integer))
    .order_by(sa.func.max(_C.seq).desc())
)
