"""Messages that wait for a chunk, searched beside the chunks as an area of their own (RS-17).

The negative of a message's number stands for the id of its chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sqlalchemy as sa

from memory import words
from memory.hot_areas import AreaRows, Ints
from memory.recall import real_talk
from memory.recall.chunks import Spoken
from memory.recall.reach import Reach
from memory.words import Term

WITHIN = 2_000  # newest messages of a chat, among which an audience that has no chunk yet is looked for


def waiting(connection: sa.Connection, reach: Reach, newest: Sequence[int]) -> list[Spoken]:
    """Those of a chat that a reply may recall. `newest`: first number of the newest chunk of each area, 0 for none."""
    uncut = real_talk.uncut(connection, reach.conversation_id, after=_after(connection, reach, newest))
    return [message for message in uncut if message.audience in reach.audiences and reach.holds(message.seq)]


def rows_of(messages: Sequence[Spoken]) -> AreaRows:
    """As an area; ids ascend."""
    ordered = sorted(messages, key=lambda message: -message.seq)
    zeros = np.zeros(len(ordered), dtype=np.int64)
    flags = np.zeros(len(ordered), dtype=bool)
    return AreaRows(
        ids=np.array([-message.seq for message in ordered], dtype=np.int64),
        words=np.array([len(words.tokens(message.line)) for message in ordered], dtype=np.int64),
        days=zeros,
        firsts=np.array([message.seq for message in ordered], dtype=np.int64),
        pages=flags,
        matching=flags,
    )


def held_by(found: Ints | None, term: Term, held: Mapping[int, frozenset[str]]) -> Ints | None:
    """Ids of what holds a word: of chunks as they were `found`, and of waiting messages, whose tokens are `held`. None, for a word that tells nothing
    apart, stays."""
    if found is None:
        return None
    more = [number for number, tokens in held.items() if term.token in tokens]
    return np.concatenate([found, np.array(more, dtype=np.int64)]) if more else found


def _after(connection: sa.Connection, reach: Reach, newest: Sequence[int]) -> int:
    """Number of a message behind which all stand that wait, so that a long chat is not read through for each reply.

    Chunks of one audience are made in order."""
    least = min(newest[: len(reach.audiences)], default=0)  # what was imported holds no message of this chat
    return least or real_talk.behind_newest(connection, reach.conversation_id, WITHIN)
