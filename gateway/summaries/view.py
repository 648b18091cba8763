"""Summaries of a chat as people see them: the rows that are for their eyes, the days without one, where the window begins (RS-45, RS-54, RS-167)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from gateway.config import Config
from gateway.jobs.table import JobRow, find_job
from gateway.summaries import calendar_look, calendar_state
from gateway.summaries.summarist import Summarist
from memory import conversations
from memory.conversations import Conversation
from memory.recall import chunk_store, chunk_views, edge_jump, summary_rows
from memory.recall.edge_jump import Jump
from memory.recall.kinds import ROLLING, Kind
from memory.recall.summary_rows import State, Summary
from memory.recall_schema import summary_inputs, summary_sources
from memory.schema import messages

SHOWN = (State.ACTIVE, State.WAITING, State.WITHHELD)
_LEVELS: Mapping[Kind, int] = {kind: at for at, kind in enumerate((*reversed(ROLLING), Kind.YEAR, Kind.MONTH, Kind.WEEK, Kind.DAY))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A summary with when its messages were said, how many they are, and how many rows it was made from."""

    summary: Summary
    said_from: datetime | None
    said_to: datetime | None
    messages: int
    inputs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A past or present day with messages that no row stands for, and why (RS-58, RS-167): `waiting`, `record_rule`, `no_model`, `not_over_yet`,
    `no_real_messages`, `approval`, or `failed` with the class of the `error`. `running`: it is being made just now."""

    day: date
    reason: str
    error: str = ""
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where the words begin that are sent as they are: `first`, the first message behind the edge; None when all are sent. `jump`: the way back, if
    there is one."""

    profile: str
    first: conversations.Message | None
    jump: Jump | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """`uncovered`: messages outside the window that no summary of the profile stands for; None where the profile makes none."""

    rows: tuple[Row, ...]
    uncovered: int | None
    window: Window
    allowed: bool
    has_model: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """`rows`: years, months and weeks first, then days that are not folded; `settings`: how the chat counts its days; `wrong_zone`: the chat's own
    zone where it is none, so that `zone` counts (RS-160)."""

    rows: tuple[Row, ...]
    missing: tuple[Missing, ...]
    settings: Mapping[str, Any]
    zone: str
    made: bool
    allowed: bool
    wrong_zone: str = ""


def missing(connection: sa.Connection, config: Config, summarist: Summarist, chat: Conversation, now: datetime) -> list[Missing]:
    """Days without a row, the newest first."""
    running = {day for day, job in day_jobs(connection, config, chat.id) if job.state == "running"}
    waits = {row.local_date for row in summary_rows.of_chat(connection, chat.id, kinds=(Kind.DAY,), states=(State.WAITING,))}
    found = calendar_look.missing(connection, config, summarist, chat.id, now)
    listed = [told(each, running=each.day in running) for each in found]
    return [replace(each, reason="approval") if each.day.isoformat() in waits else each for each in listed]


def told(found: calendar_look.Missing, *, running: bool) -> Missing:
    reason, _, error = found.reason.partition(": ")
    return Missing(day=found.day, reason=reason.replace(" ", "_"), error=error, running=running)


def day_jobs(connection: sa.Connection, config: Config, chat_id: str) -> list[tuple[date, JobRow]]:
    """The jobs of the days that have no row, each audience apart."""
    days = calendar_state.read(connection, config, chat_id)
    if days is None:
        return []
    wanted = [(day.day, calendar_state.day_job(days, day)) for day in days.waiting]
    found = [(day, find_job(connection, job.kind, job.key)) for day, job in wanted]
    return [(day, row) for day, row in found if row is not None]


def window(connection: sa.Connection, chat: Conversation, profile: str) -> Window:
    sent = conversations.window(connection, chat.id, chat.window_edge) if chat.window_edge else []
    return Window(profile=profile, first=sent[0] if sent else None, jump=edge_jump.last(chat))


def may_read(summary: Summary, person_id: str) -> bool:
    return chunk_views.may_read(str(chunk_store.area_of(summary.conversation_id, summary.audience)), summary.conversation_id, person_id)


def rows(connection: sa.Connection, chat_id: str, person_id: str, kinds: Collection[Kind], *, folded: bool) -> list[Row]:
    """Those for the person's eyes, the oldest level first; `folded`: those too that stand in another now."""
    found = summary_rows.of_chat(connection, chat_id, kinds=kinds, states=tuple(State) if folded else SHOWN)
    mine = [each for each in found if each.text and may_read(each, person_id)]  # one without words was made anew
    return facts(connection, sorted(mine, key=lambda row: (_LEVELS[row.kind], row.local_date or "", row.first_seq, row.id)))


def row(connection: sa.Connection, chat_id: str, person_id: str, summary_id: int) -> Row | None:
    """One of this chat, if it is for the person's eyes."""
    found = summary_rows.one(connection, summary_id)
    if found is None or found.conversation_id != chat_id or not may_read(found, person_id):
        return None
    return facts(connection, [found])[0]


def facts(connection: sa.Connection, found: Sequence[Summary]) -> list[Row]:
    ids = [each.id for each in found]
    if not ids:
        return []
    said = {row.id: row for row in connection.execute(_SAID, {"ids": ids})}
    made = {row.id: row.many for row in connection.execute(_MADE_FROM, {"ids": ids})}
    return [
        Row(
            summary=each,
            said_from=said[each.id].first if each.id in said else None,
            said_to=said[each.id].last if each.id in said else None,
            messages=said[each.id].many if each.id in said else 0,
            inputs=made.get(each.id, 0),
        )
        for each in found
    ]


_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_SAID = (
    sa.select(
        summary_sources.c.summary_id.label("id"),
        sa.func.min(messages.c.created_at, type_=messages.c.created_at.type).label("first"),
        sa.func.max(messages.c.created_at, type_=messages.c.created_at.type).label("last"),
        sa.func.count().label("many"),
    )
    .join(messages, messages.c.seq == summary_sources.c.message_seq)
    .where(summary_sources.c.summary_id.in_(_IDS))
    .group_by(summary_sources.c.summary_id)
)
_MADE_FROM = (
    sa.select(summary_inputs.c.summary_id.label("id"), sa.func.count().label("many"))
    .where(summary_inputs.c.summary_id.in_(_IDS))
    .group_by(summary_inputs.c.summary_id)
)
