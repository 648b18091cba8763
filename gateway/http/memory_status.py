"""How a memory stands, for the page: the figures of `/memory status`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from aiohttp import web

from gateway.http.base import answer
from gateway.http.memory_scope import MemoryScopes
from gateway.memory_status import JOB_STATES, Figures, MemoryStatus

SHOWN = 60  # missing days in one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatusRoutes:
    scopes: MemoryScopes
    status: MemoryStatus

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/memory/status", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        return answer(as_json(await self.status.of(await self.scopes.of(request))))


def as_json(seen: Figures) -> dict[str, object]:
    """Times in UTC; `missing`: the newest days without their record; `index` is that of the whole gateway, `files` and `chunks` are this memory's."""
    return {
        "scope": str(seen.scope),
        "timezone": seen.zone.key or "",
        "curated": {
            "lines": seen.curated.lines,
            "yours": seen.curated.yours,
            "tokens": seen.curated.tokens,
            "max_tokens": seen.prompt_max,
            "left_out": seen.curated.left_out,
        },
        "days": {"count": len(seen.days), "last": _date(seen.days[-1] if seen.days else None), "missing": list(map(_date, seen.missing[:SHOWN]))},
        "next_summary": _time(seen.next_summary),
        "dream": {
            "at_night": seen.dreams_at_night,
            "last": _date(date.fromisoformat(seen.dream.local_date)) if seen.dream else None,
            "state": seen.dream.state if seen.dream else "",
            "skipped": seen.dream_skip,
            "proposals": seen.proposals,
        },
        "index": {
            "files": seen.files,
            "chunks": seen.chunks,
            "words": seen.index.words,
            "vectors": seen.index.vectors,
            "embedder": seen.index.embedder,
            "reason": seen.index.reason,
        },
        "jobs": {state: seen.jobs.get(state, 0) for state in JOB_STATES},
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in seen.problems],
        "lore_left_out": list(seen.lore_left_out),
    }


def _date(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
