"""How the memory of one scope stands, as `/memory status` says it: figures first, then their words in three languages.

Only of the scope that is asked about: nothing here reads another's files or rows (WD-10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway import nightly
from gateway.config import Config
from gateway.dreams import runs as dream_runs
from gateway.dreams.night import dreams_by_itself
from gateway.indexing import IndexStatus
from gateway.language import say
from gateway.zones import zone_of
from memory import dream_store, lore, lore_pages, proposal_store, provenance, tokens
from memory.database import Database
from memory.diary import numbers
from memory.dream_store import Dream
from memory.file_errors import FileUnreadable
from memory.index_schema import file_chunks
from memory.layout import CURATED, Role, day_of
from memory.lines import entries
from memory.prompt_budget import share
from memory.schedule import next_run
from memory.schema import jobs, spaces
from memory.scope_templates import for_prompt
from memory.scopes import ROOT, Access, Area, Kind, Scope
from memory.texts import Problem
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

SHOWN = 5  # problems and missing days in one answer; the rest is counted
JOB_STATES = ("running", "waiting", "parked")
"""Of jobs that are not over."""


class IndexDesk(Protocol):
    async def status(self) -> IndexStatus: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Curated:
    """MEMORY.md: its lines, how many of them are people's, and its tokens; `left_out` lines do not fit the prompt (WD-7)."""

    lines: int = 0
    yours: int = 0
    tokens: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """What the files say. `days`: dates with a daily file; `lore_left_out`: pages for which the head has no room (WD-139)."""

    text: str = ""
    days: tuple[date, ...] = ()
    problems: tuple[Problem, ...] = ()
    lore_left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """`title`: of a space, empty when nobody named it; `next_summary`: None when days are not summarised; `missing`: newest first; `dream_skip`: why
    the last dream had nothing to do, else empty; `files` and `chunks` in the index; `jobs` by state."""

    scope: Scope
    title: str
    zone: ZoneInfo
    curated: Curated
    prompt_max: int
    days: tuple[date, ...]
    next_summary: datetime | None
    missing: tuple[date, ...]
    dream: Dream | None
    dreams_at_night: bool
    dream_skip: str
    proposals: int
    files: int
    chunks: int
    index: IndexStatus
    jobs: Mapping[str, int]
    problems: tuple[Problem, ...]
    lore_left_out: tuple[str, ...]


class MemoryStatus:
    def __init__(
        self, *, db: Database, files: WorkspaceThreads, index: IndexDesk, config: Callable[[], Config], clock: Callable[[], datetime]
    ) -> None:
        self._db = db
        self._files = files
        self._index = index
        self._config = config
        self._clock = clock

    async def of(self, scope: Scope) -> Figures:
        """Raises StoreUnavailable."""
        disk = await self._files.read(partial(_on_disk, scope=scope))
        index = await self._index.status()
        return await self._db.read(lambda connection: self._figures(connection, scope, disk, index))

    async def text(self, scope: Scope, language: str) -> str:
        return words(await self.of(scope), language)

    async def index_line(self, language: str) -> str:
        """The state of the index in a line, for `/status`."""
        index = await self._index.status()
        return say(language, "status_index", words=words_state(index, language), vectors=vectors_state(index, language))

    def _figures(self, connection: sa.Connection, scope: Scope, disk: OnDisk, index: IndexStatus) -> Figures:
        config, now, name = self._config(), self._clock(), str(scope)
        zone = zone_of(connection, name, config.timezone)
        rows = provenance.lines_of(connection, name, CURATED)
        indexed = connection.execute(_INDEXED, {"scope": name}).one()
        spec = nightly.daily_at(config.summary.time, config.summary.jitter_seconds, nightly.instance_id(connection), name)
        night = config.summary.enabled and dreams_by_itself(config, name)
        waiting = [each for each in proposal_store.open_proposals(connection, name, now) if each.kind != "forget"]
        ended = dream_runs.last_ended(connection, name, states=("done",))
        return Figures(
            scope=scope,
            title=title_of(connection, scope),
            zone=zone,
            curated=_curated(disk.text, rows, config.memory.prompt_max_tokens),
            prompt_max=config.memory.prompt_max_tokens,
            days=disk.days,
            next_summary=next_run(spec, now, zone).at if config.summary.enabled else None,
            missing=nightly.missing_dates(connection, name, config, now) if config.summary.enabled else (),
            dream=dream_store.last(connection, name),
            dreams_at_night=night,
            dream_skip=ended.skipped if ended else "",
            proposals=len(waiting),
            files=indexed.files,
            chunks=indexed.chunks,
            index=index,
            jobs=job_counts(connection, name),
            problems=disk.problems,
            lore_left_out=disk.lore_left_out,
        )


def title_of(connection: sa.Connection, scope: Scope) -> str:
    """What people call a space; empty when nobody named it, and for other scopes."""
    return (connection.execute(_TITLE, {"space": scope.id}).scalar() or "") if scope.kind is Kind.SPACE else ""


def job_counts(connection: sa.Connection, scope: str) -> dict[str, int]:
    """The jobs that work for a scope and are not ended, by state."""
    return {row.state: row.number for row in connection.execute(_JOBS, {"scope": scope})}


def _on_disk(workspace: Workspace, scope: Scope) -> OnDisk:
    text = ""
    try:
        found = workspace.read(scope, CURATED)
        text = found.content if found else ""
    except FileUnreadable:
        pass  # it is among the problems
    listed = workspace.files(scope)
    pages = lore_pages.always_pages(workspace, Access(scope=scope, reads=(Area(scope),)))
    days = (day_of(file.path) for file in listed if file.role is Role.DAILY)
    return OnDisk(
        text=text,
        days=tuple(sorted(day for day in days if day is not None)),
        problems=workspace.problems(scope),
        lore_left_out=lore.standing(pages).left_out,
    )


def _curated(text: str, rows: Mapping[str, provenance.LineRow], most: int) -> Curated:
    found = entries(text)
    shown = for_prompt(CURATED, text)
    return Curated(
        lines=len(found),
        yours=sum(1 for entry in found if entry.hash not in rows),
        tokens=tokens.count(shown) if found else 0,
        left_out=share(shown, rows, most, tokens.count).left_out if found else 0,
    )


_INDEXED = sa.select(sa.func.count(file_chunks.c.path.distinct()).label("files"), sa.func.count().label("chunks")).where(
    file_chunks.c.scope == sa.bindparam("scope")
)
_JOBS = (
    sa.select(jobs.c.state, sa.func.count().label("number"))
    .where(jobs.c.scope == sa.bindparam("scope"), jobs.c.state.in_(JOB_STATES))
    .group_by(jobs.c.state)
)
_TITLE = sa.select(spaces.c.title).where(spaces.c.id == sa.bindparam("space"))


# -- in words, pure ---------------------------------------------------------------------------------------------------------


def words(seen: Figures, language: str) -> str:
    """The sample of section 9, in `language`; problems follow only when there are any (WD-23)."""
    zone = seen.zone.key or say(language, "system_zone")
    lines = [
        say(language, "memory_head", scope=_scope_words(seen, language), zone=zone),
        _curated_line(seen, language),
        _days_line(seen, language),
        _dream_line(seen, language),
        say(
            language, "memory_index", files=f"{seen.files:,}", chunks=f"{seen.chunks:,}", words=words_state(seen.index, language),
            vectors=vectors_state(seen.index, language),
        ),
        say(language, "memory_jobs", **{state: seen.jobs.get(state, 0) for state in JOB_STATES}),
    ]  # fmt: skip
    if seen.curated.left_out:
        lines.append(say(language, "memory_full", left_out=seen.curated.left_out))
    lines += [say(language, "memory_problem", path=problem.path, reason=problem.reason) for problem in seen.problems[:SHOWN]]
    if len(seen.problems) > SHOWN:
        lines.append(say(language, "and_more", count=len(seen.problems) - SHOWN))
    if seen.lore_left_out:
        lines.append(say(language, "memory_lore", paths=", ".join(seen.lore_left_out), most=f"{lore.ALWAYS_MAX_TOKENS:,}"))
    return "\n".join(lines)


def words_state(index: IndexStatus, language: str) -> str:
    return say(language, "index_ok" if index.words == "ok" else "index_failed")


def vectors_state(index: IndexStatus, language: str) -> str:
    """`vectors: off (reason)` and its kind."""
    match index.vectors:
        case "ok":
            return say(language, "vectors_ok", label=index.embedder, dimension=f"{index.dimension:,}")
        case "building":
            return say(language, "vectors_building", done=f"{index.embedded:,}", total=f"{index.passages:,}")
        case "failed":
            return say(language, "vectors_failed", reason=index.reason)
        case "off":
            return say(language, "vectors_off", reason=index.missing or say(language, "vectors_no_embedder"))


def counts_words(dream: Dream) -> str:
    """What a dream changed: +added ~changed −dropped; lines that were merged count as changed."""
    found = numbers(dream.changes)
    return f"+{found['added']} ~{found['changed']} −{found['dropped']}"


def _scope_words(seen: Figures, language: str) -> str:
    if seen.scope == ROOT:
        return say(language, "memory_of_owner")
    if seen.scope.kind is Kind.PERSON:
        return say(language, "memory_of_person")
    return say(language, "memory_of_space", title=seen.title) if seen.title else say(language, "memory_of_group")


def _curated_line(seen: Figures, language: str) -> str:
    percent = round(100 * seen.curated.tokens / seen.prompt_max) if seen.prompt_max else 0
    return say(
        language, "memory_curated", lines=seen.curated.lines, yours=seen.curated.yours, tokens=f"{seen.curated.tokens:,}",
        most=f"{seen.prompt_max:,}", percent=percent,
    )  # fmt: skip


def _days_line(seen: Figures, language: str) -> str:
    at = f"{seen.next_summary.astimezone(seen.zone):%H:%M}" if seen.next_summary else say(language, "off")
    missing = ", ".join(str(day) for day in seen.missing[:SHOWN]) or say(language, "none")
    if len(seen.missing) > SHOWN:
        missing += f" (+{len(seen.missing) - SHOWN})"
    last = str(seen.days[-1]) if seen.days else say(language, "none")
    return say(language, "memory_days", files=f"{len(seen.days):,}", last=last, at=at, missing=missing)


def _dream_line(seen: Figures, language: str) -> str:
    night = say(language, "on" if seen.dreams_at_night else "off")
    if seen.dream_skip == "model":
        last = say(language, "dream_no_model")
    elif seen.dream is None or seen.dream.created_at is None:
        last = say(language, "none_yet")
    else:
        key = {"done": "dream_ok", "refused": "dream_refused", "undone": "dream_undone"}.get(seen.dream.state, "dream_at_work")
        at = f"{seen.dream.created_at.astimezone(seen.zone):%Y-%m-%d %H:%M}"
        last = f"{at} {say(language, key)} ({counts_words(seen.dream)})" if seen.dream.state == "done" else f"{at} {say(language, key)}"
    return say(language, "memory_dream", last=last, night=night, proposals=seen.proposals)
