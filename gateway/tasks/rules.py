"""What is decided about tasks: when one runs, whether a run that is due is done, left out or too late, what became of it (WD-133 to WD-138). Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.delivery.rules import OPEN, PartState
from gateway.language import say
from gateway.tasks import cron
from gateway.tasks.cron import BadRule, Rule
from gateway.tasks.cron_words import explain, moment
from gateway.zone_names import otherwise
from memory.schedule import Daily, next_run, run_on
from memory.tasks import Task

TASKS_MAX = 20  # of one person (WD-133)
TEXT_MAX = 2_000  # characters
NEXT_SHOWN = 3
OTHERS_MINUTES = 15  # between two runs of a task that is not the owner's
KINDS = ("say", "ask")
Doing: TypeAlias = Literal["run", "skip", "miss"]

_TIME = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """At one instant, in UTC."""

    at: datetime


Timing: TypeAlias = Rule | Once


def read_when(text: str, now: datetime, zone: ZoneInfo) -> Timing:
    """What a person or model wrote: a cron rule, a date and time, or a time alone, which is the next one to come. Local to `zone` unless an offset
    is written. Raises BadRule."""
    written = " ".join(unicodedata.normalize("NFKC", text).split())
    if written.startswith("@") or len(written.split()) == 5:
        rule = cron.parse(written)
        if cron.next_run(rule, now, zone) is None:
            raise BadRule("cron_never", rule=written)
        return rule
    once = _once(written, now, zone)
    if once is None:
        raise BadRule("task_when", text=written[:80])
    return Once(at=once)


def _once(written: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    if match := _TIME.fullmatch(written):
        with suppress(ValueError):
            return next_run(Daily(at=time(int(match[1]), int(match[2]))), now, zone).at
    if not _MOMENT.match(written):
        return None
    try:
        named = datetime.fromisoformat(re.sub(r"[T ](\d):", r"T0\1:", written))
    except ValueError:
        return None
    if not 1 < named.year < 9999:  # in another zone it may lie in a year that has no number
        return None
    if named.tzinfo is not None:
        return named.astimezone(UTC).replace(second=0, microsecond=0)
    run = run_on(Daily(at=named.time().replace(second=0, microsecond=0)), named.date(), zone)
    return run.at if run else None


def check(timing: Timing, now: datetime, zone: ZoneInfo, language: str, *, owner: bool) -> None:
    """Raises BadRule for a time that is over, and for runs too close to each other (WD-133)."""
    match timing:
        case Once(at=at):
            if at <= now:
                raise BadRule("task_past", at=moment(at, zone, language))
        case Rule():
            if not owner and cron.shortest_distance(timing) < timedelta(minutes=OTHERS_MINUTES):
                raise BadRule("task_distance", minutes=OTHERS_MINUTES)


def timing_of(task: Task) -> tuple[Timing, ZoneInfo]:
    """When a stored task runs. Raises BadRule for a row that cannot (WD-137)."""
    try:
        zone = otherwise(task.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRule("task_when", text=task.timezone) from error
    if task.kind not in KINDS:
        raise BadRule("task_when", text=task.kind)
    if task.rule:
        return cron.parse(task.rule), zone
    if task.once_at is None:
        raise BadRule("task_when", text="")
    return Once(at=task.once_at), zone


def first_run(timing: Timing, now: datetime, zone: ZoneInfo) -> datetime | None:
    """The run to plan now; a time that is over is planned all the same, to be done late or shown as missed."""
    return timing.at if isinstance(timing, Once) else cron.next_run(timing, now, zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is done about a task whose time has come. `slot`: the run that counts, for all before it too; `next_run`: None when nothing follows."""

    doing: Doing
    slot: datetime
    next_run: datetime | None


def due(task: Task, timing: Timing, zone: ZoneInfo, now: datetime, *, late: timedelta) -> Due:
    """Missed runs are one (WD-135); a task whose last run still goes on skips; one that is too late by more than `late` is missed (SC-09)."""
    planned = task.next_run
    assert planned is not None, "a task that is due has a time"
    slot, after = planned, None
    if isinstance(timing, Rule):
        slot = cron.newest_run(timing, planned, now, zone) or planned
        after = cron.next_run(timing, max(now, slot), zone)
    doing: Doing = "skip" if task.running else "miss" if now - slot > late else "run"
    return Due(doing=doing, slot=slot, next_run=after)


def settled(parts: Sequence[tuple[str, str]], job_state: str | None) -> tuple[str, str] | None:
    """What became of a run, from (state, reason) of its stored parts and the state of its job: a result and why, None while it goes on.

    Delivered is what the channel gave an id for, and nothing else (CH-84).
    """
    if parts:
        if any(state in OPEN for state, _ in parts):
            return None
        lost = next(((state, reason) for state, reason in parts if state != PartState.SENT), None)
        if lost is None:
            return "sent", ""
        return ("revoked", "") if lost[1] == "revoked" else ("failed", "expired" if lost[1] == "expired" else "undelivered")
    return None if job_state in ("waiting", "running") else ("failed", "")


def late_note(slot: datetime, now: datetime, zone: ZoneInfo, language: str, *, grace: timedelta) -> str:
    """The note of a run that is later than the grace; empty for one in time (WD-135)."""
    return say(language, "task_late", at=moment(slot, zone, language)) if now - slot > grace else ""


def lies_too_long(slot: datetime, stored_at: datetime, now: datetime, *, grace: timedelta) -> bool:
    """Whether what was stored in time is late by now, because it could not be sent."""
    return stored_at - slot <= grace < now - slot


def in_words(timing: Timing, zone: ZoneInfo, language: str) -> str:
    """When a task runs, as a person reads it."""
    return explain(timing, language) if isinstance(timing, Rule) else say(language, "task_once", at=moment(timing.at, zone, language))


def confirmation(task: Task, now: datetime) -> str:
    """The rule in words, the zone, and the next three runs in that zone (WD-132); for one that begins paused, how it goes on."""
    timing, zone = timing_of(task)
    if task.state == "paused":
        return say(task.language, "task_waits", id=task.id, rule=in_words(timing, zone, task.language), zone=zone.key)
    if isinstance(timing, Once):
        return say(task.language, "task_made_once", id=task.id, at=moment(timing.at, zone, task.language), zone=zone.key)
    runs = "; ".join(moment(at, zone, task.language) for at in cron.next_runs(timing, now, zone, NEXT_SHOWN))
    return say(task.language, "task_made", id=task.id, rule=explain(timing, task.language), zone=zone.key, runs=runs)
