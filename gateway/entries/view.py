"""A chat's entries as people see them: numbered as they see its messages, with what each hides and how a backfill goes (RS-83, RS-87, RS-92)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway import live_window, windows
from gateway.config import Config
from gateway.entries import jobs as entries
from gateway.entries import live as live_entries
from gateway.entries import settings as entry_settings
from gateway.entries.settings import EntrySettings
from gateway.jobs.parts import progress_of
from gateway.jobs.table import JobRow, find_job
from memory.conversations import Conversation
from memory.recall import entry_plan, entry_rows, summary_rows
from memory.recall.calendar_plan import Stamp
from memory.recall.chunk_views import may_hear
from memory.recall.entry_rows import Span
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State, Summary
from memory.schema import jobs

_STATES: Mapping[str, str] = {"waiting": "running", "running": "running", "done": "done", "parked": "failed", "cancelled": "stopped"}
_NOWHERE = Span(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`first`, `last`: numbers of messages as people see them, the position among the real messages of the chat from 1; `messages`: how many it is
    for; `hidden`: how many of them are not sent because of it; `left_out`: it is not sent now because a message that it stands for is (RS-72);
    `replaced`: it stands in another entry now, and can be switched on again; `withheld`: something it rests on was forgotten; `origin`: asked,
    written, automatic, imported."""

    id: int
    title: str
    text: str
    enabled: bool
    waiting: bool
    withheld: bool
    origin: str
    first: int
    last: int
    messages: int
    tokens: int
    said_from: datetime | None
    said_to: datetime | None
    hidden: int
    left_out: bool
    replaced: bool
    hand_edited: bool
    stale: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of a backfill, in batches. `state`: running, stopped, failed or done; `reason`: why it failed, or what it waits for."""

    done: int
    total: int
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Work of its own accord that failed. `what`: automatic, an entry; or merge, of the oldest into one. `state`: waiting to be tried again soon, or
    failed, to be tried again after a day; `reason`: the class of the fault."""

    what: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesView:
    """`messages`: real ones of the chat; `uncovered`: those that no entry in force stands for (RS-92); `waiting`: entries that wait for a yes;
    `making`: how many were asked for and are not there yet; `failed`: the newest that was asked for could not be made; `stuck`: what should have
    been made without being asked for, and was not; `allowed`: whether summaries may be stored; `has_model`: whether one can be made."""

    entries: tuple[Entry, ...]
    settings: EntrySettings
    messages: int
    uncovered: int
    waiting: int
    making: int
    failed: bool
    stuck: tuple[Stuck, ...]
    progress: Progress | None
    allowed: bool
    has_model: bool


def view(connection: sa.Connection, config: Config, chat: Conversation, person_id: str, now: datetime, *, has_model: bool) -> EntriesView:
    heard = [each for each in entry_rows.real(connection, chat.id) if may_hear(each.audience, chat.id, person_id)]
    found = listed(connection, config, chat, person_id, now)
    told = entry_rows.stood(connection, chat.id, active=True)
    after = windows.cleared(chat)
    return EntriesView(
        entries=found,
        settings=entry_settings.read(connection, config, chat),
        messages=len(heard),
        uncovered=sum(1 for each in heard if each.seq > after and each.seq not in told),
        waiting=sum(1 for each in found if each.waiting),
        making=connection.execute(_MAKING, {"begin": f"{chat.id}:{entries.ASKED}:"}).scalar_one(),
        failed=connection.execute(_NEWEST, {"begin": f"{chat.id}:{entries.ASKED}:"}).scalar() == "parked",
        stuck=stuck(connection, chat.id),
        progress=progress(connection, chat.id),
        allowed=windows.keeps_summaries(config, chat),
        has_model=has_model,
    )


def listed(
    connection: sa.Connection, config: Config, chat: Conversation, person_id: str, now: datetime, ids: Collection[int] | None = None
) -> tuple[Entry, ...]:
    """Those of these entries (None: of all) that are for the person's eyes."""
    rows = readable(connection, chat.id, person_id, ids)
    if not rows:
        return ()
    talk = entry_rows.real(connection, chat.id)
    places = entry_plan.places([each.seq for each in talk])
    said = {each.seq: each for each in talk}
    spans, replaced = entry_rows.spans(connection, [row.id for row in rows]), entry_rows.replaced(connection, chat.id)
    sent = live_entries.read(connection, chat, config)
    live = [each.seq for each in live_window.window(connection, chat, windows.profile_of(config, chat), config, now).log]
    out = sent.left_out(live)
    hidden = {each.id: len(sent.hidden.intersection(each.seqs)) for each in sent.coverings}
    return tuple(
        _entry(row, spans.get(row.id, _NOWHERE), places, said, hidden.get(row.id, 0), left_out=row.id in out, replaced=row.id in replaced)
        for row in rows
    )


def readable(connection: sa.Connection, chat_id: str, person_id: str, ids: Collection[int] | None) -> list[Summary]:
    """Those of these entries (None: of all) that are for the person's eyes and that still say something, or are there to be filled."""
    rows = summary_rows.of_chat(connection, chat_id, kinds=(Kind.ENTRY,), states=tuple(State))
    meant = rows if ids is None else [row for row in rows if row.id in ids]
    return [row for row in meant if (row.text or row.title or row.hand_edited) and may_hear(row.audience, chat_id, person_id)]


def _entry(row: Summary, span: Span, places: Mapping[int, int], said: Mapping[int, Stamp], hidden: int, *, left_out: bool, replaced: bool) -> Entry:
    return Entry(
        id=row.id,
        title=row.title,
        text=row.text,
        enabled=row.state is State.ACTIVE,
        waiting=row.state is State.WAITING,
        withheld=row.state is State.WITHHELD,
        origin=row.origin,
        first=places.get(span.first, 0),
        last=places.get(span.last, 0),
        messages=span.many,
        tokens=row.tokens,
        said_from=said[span.first].at if span.first in said else None,
        said_to=said[span.last].at if span.last in said else None,
        hidden=hidden,
        left_out=left_out,
        replaced=replaced,
        hand_edited=row.hand_edited,
        stale=row.stale,
        updated_at=row.updated_at,
    )


def stuck(connection: sa.Connection, chat_id: str) -> tuple[Stuck, ...]:
    """Jobs that nobody asked for and that nobody else tells of."""
    rows = ((what, find_job(connection, entries.KIND, entries.job_of(what, chat_id, "").key)) for what in (entries.AUTOMATIC, entries.MERGE))
    return tuple(
        Stuck(what=what, state="failed" if row.state == "parked" else "waiting", reason=row.error_class)
        for what, row in rows
        if row is not None and row.error_class and row.state in ("waiting", "parked")
    )


def backfill_job(connection: sa.Connection, chat_id: str) -> JobRow | None:
    return find_job(connection, entries.KIND, entries.job_of(entries.BACKFILL, chat_id, "").key)


def progress(connection: sa.Connection, chat_id: str) -> Progress | None:
    """How the backfill of a chat goes, or went; None where none was asked for."""
    row = backfill_job(connection, chat_id)
    if row is None:
        return None
    noted = progress_of(connection, row.id) or row.result or {}
    skipped = str((row.result or {}).get("skipped", ""))
    return Progress(
        done=int(noted.get("done", 0)),
        total=int(noted.get("total", 0)),
        state="failed" if skipped else _STATES[row.state],
        reason=skipped.replace(" ", "_") or row.error_class,
    )


_ASKED = (jobs.c.kind == entries.KIND, jobs.c.key.startswith(sa.bindparam("begin", type_=sa.Text)))
_MAKING = sa.select(sa.func.count()).where(*_ASKED, jobs.c.state.in_(["waiting", "running"]))
_NEWEST = sa.select(jobs.c.state).where(*_ASKED).order_by(jobs.c.updated_at.desc(), jobs.c.id.desc()).limit(1)
