"""Summaries of pieces of a day that is not over: made when its talk is about to leave the window, sent once it has left (RS-162).

They are paid parts of the job that makes the day's row, which then pays for none of them again; that job tells them here, and drops them with its
row. Each counts only as long as its messages read as they did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa

from gateway.jobs.parts import read_told
from memory.recall import real_talk
from memory.recall.answers import Answer
from memory.recall.calendar_plan import Clock, Stamp
from memory.recall.chunks import Spoken, fingerprint_of
from memory.recall.summary_rows import Detail

DAY = "day-row"  # the kind of the job that makes a day's row
PART = "pieces"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPiece:
    """A summary of some messages of a day. `day`: YYYY-MM-DD; `begins`, `ends`: local times of the first and the last, HH:MM."""

    id: int = 0  # as rows have one, which these are not yet
    day: str
    begins: str
    ends: str
    text: str
    details: tuple[Detail, ...]
    seqs: tuple[int, ...]

    @property
    def first_seq(self) -> int:
        return self.seqs[0]

    @property
    def last_seq(self) -> int:
        return self.seqs[-1]


def key_of(conversation_id: str, day: str) -> str:
    """Of the job that makes the row that everybody in the chat may read."""
    return f"{conversation_id}:{day}"


def as_json(talk: Sequence[Spoken], answer: Answer) -> dict[str, Any]:
    """What the job tells of one piece."""
    return {"seqs": [message.seq for message in talk], "print": fingerprint_of(talk), **answer.as_json()}


def of_chat(connection: sa.Connection, conversation_id: str, waits: Collection[Stamp], clock: Clock, edge: int) -> list[DayPiece]:
    """The pieces that begin at or before `edge` and stand for nothing but messages of `waits`, which no row stands for, in order.

    One that goes on behind the edge is among them: it stands beside the messages that overlap it, as the row of a day does (RS-72).
    """
    days = sorted({clock.day_of(message.at).isoformat() for message in waits})
    free = {message.seq for message in waits}
    told = read_told(connection, DAY, [key_of(conversation_id, day) for day in days], PART)
    found: list[DayPiece] = []
    for day in days:
        for value in cast("list[Mapping[str, Any]]", told.get(key_of(conversation_id, day), [])):
            seqs: list[int] = value["seqs"]
            if seqs[0] <= edge and free.issuperset(seqs):
                found += _as_it_reads(connection, conversation_id, day, value, clock)
    return found


def _as_it_reads(connection: sa.Connection, conversation_id: str, day: str, value: Mapping[str, Any], clock: Clock) -> list[DayPiece]:
    """The piece, or nothing when a message of it was changed or taken away."""
    talk = real_talk.by_seq(connection, conversation_id, value["seqs"])
    if not talk or fingerprint_of(talk) != value["print"]:
        return []
    answer = Answer.of_json(value)
    begins, ends = (f"{each.at.astimezone(clock.zone):%H:%M}" for each in (talk[0], talk[-1]))
    return [DayPiece(day=day, begins=begins, ends=ends, text=answer.text, details=answer.details, seqs=tuple(value["seqs"]))]
