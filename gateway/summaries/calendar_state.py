"""What there is to do for the days of one chat, read in one transaction (RS-51, RS-52, RS-161, RS-164). Plain functions on a `Connection`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import sqlalchemy as sa

from gateway import live_window, windows
from gateway.config import Config
from gateway.jobs.table import Job, enqueue
from gateway.summaries.day_pieces import DAY, key_of
from memory import conversations
from memory.conversations import Conversation
from memory.recall import calendar_plan, summary_rows, uncovered
from memory.recall.audiences import EVERYBODY
from memory.recall.calendar_plan import Clock, Day, Fold
from memory.recall.kinds import CALENDAR, Kind
from memory.recall.summary_rows import Summary

FOLD = "fold"  # the kind of the job that folds rows into longer ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDays:
    """`waiting`: days with messages that no row stands for; `rows`: those that are sent; `last_said`: the newest message; `above`: standing text is
    above its share."""

    chat: Conversation
    scope: str
    clock: Clock
    waiting: Sequence[Day]
    rows: Sequence[Summary]
    last_said: datetime | None
    above: bool

    def due(self, now: datetime) -> list[Day]:
        """Days that may be summarised now, the oldest first."""
        return [day for day in self.waiting if calendar_plan.is_over(day.day, self.clock, now, self.last_said)]

    def next_look(self, now: datetime) -> datetime | None:
        """When the next of the other days may be over; None when there is none."""
        looks = [calendar_plan.next_look(day.day, self.clock, now, self.last_said) for day in self.waiting if day not in self.due(now)]
        return min(looks, default=None)

    def fold(self, now: datetime, passed: Collection[int] = ()) -> Fold | None:
        """What is folded next: the oldest week, else, above the share, a month or a year. `passed`: ids of rows of which nothing is to be made but
        together with others (RS-111)."""
        weeks = [fold for fold in calendar_plan.weeks_to_fold(self.rows, self.waiting, self.clock, now) if not fold.is_among(passed)]
        if weeks:
            return weeks[0]
        return calendar_plan.to_compress(self.rows, passed) if self.above else None

    def halve(self, passed: Collection[int] = ()) -> Summary | None:
        """The year row that is halved, when nothing can be folded and the text is still above its share."""
        return calendar_plan.to_halve(self.rows, passed) if self.above else None

    def part_of(self, day: date, audience: str) -> Summary | None:
        """The row that late messages of a day join: not folded, not a person's, made by the same clock (RS-159, RS-166)."""
        wanted = (Kind.DAY, day.isoformat(), audience, False, self.clock.zone.key or "", self.clock.rollover_hour)
        known = ((row, (row.kind, row.local_date, row.audience, row.hand_edited, row.zone, row.rollover_hour)) for row in self.rows)
        return next((row for row, of in known if of == wanted), None)


def read(connection: sa.Connection, config: Config, chat_id: str) -> ChatDays | None:
    """None when the chat is gone."""
    chat = conversations.conversation(connection, chat_id)
    if chat is None:
        return None
    scope = uncovered.scope_of(connection, chat.id)
    clock = windows.clock_of(connection, config, chat, scope)
    return ChatDays(
        chat=chat,
        scope=scope,
        clock=clock,
        waiting=calendar_plan.uncovered_days(uncovered.waiting(connection, chat.id, CALENDAR), clock),
        rows=summary_rows.of_chat(connection, chat.id, kinds=CALENDAR),
        last_said=uncovered.last_said(connection, chat.id),
        above=live_window.above_share(connection, chat, config),
    )


def day_job(days: ChatDays, day: Day, *, manual: bool = False, ahead: int = 0) -> Job:
    """`manual`: somebody asked for it. `ahead`: the day is not over, and its messages up to this number are about to leave the window (RS-162)."""
    who = hashlib.blake2b(day.audience.encode(), digest_size=6).hexdigest() if day.audience else ""
    payload = {"conversation": days.chat.id, "date": day.day.isoformat(), "audience": day.audience, "manual": manual, "ahead": ahead}
    key = ":".join(filter(None, (key_of(days.chat.id, day.day.isoformat()), who)))
    return Job(kind=DAY, key=key, scope=days.scope, payload=payload, priority=int(manual))


def summarise_ahead(connection: sa.Connection, config: Config, chat_id: str, last: int) -> None:
    """Have the pieces made that stand for messages up to number `last`, of days that have no row (RS-162)."""
    days = read(connection, config, chat_id)
    for day in days.waiting if days is not None else ():
        if days is not None and day.audience == EVERYBODY and day.seqs[0] <= last:
            enqueue(connection, day_job(days, day, ahead=last), again=True)


def fold_job(conversation_id: str, scope: str) -> Job:
    return Job(kind=FOLD, key=conversation_id, scope=scope, payload={"conversation": conversation_id})
