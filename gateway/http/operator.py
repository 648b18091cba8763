"""The operator's pages but for people and model set-up: overview, jobs, usage, audit log, the way of a message, configuration (WO-30, WO-64).

The door has let in admins and owners only (`gateway.http.auth`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa
from aiohttp import web

from gateway import audit
from gateway.arrivals import place_titles
from gateway.http.base import HttpFault, actor_of, answer, language_of, not_found, query_int, row_id
from gateway.http.views import JobView, OperatorView
from gateway.job_words import failure
from gateway.reports import Reports
from memory.database import Database

JOB_STATES = ("", "waiting", "running", "done", "parked", "cancelled")


class OperatorRoutes:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], view: OperatorView, reports: Reports) -> None:
        self._db = db
        self._clock = clock
        self._view = view
        self._reports = reports

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/operator/overview", self.overview),
            web.get("/api/operator/jobs", self.jobs),
            web.post("/api/operator/jobs/{id}/run", self.run_job),
            web.get("/api/operator/usage", self.usage),
            web.get("/api/operator/audit", self.audit),
            web.get("/api/operator/deliveries/{delivery_id}", self.delivery),
            web.get("/api/operator/config", self.config),
        ]

    async def overview(self, request: web.Request) -> web.Response:
        return answer(await self._view.overview(language_of(request)))

    async def jobs(self, request: web.Request) -> web.Response:
        state = request.query.get("state", "")
        if state not in JOB_STATES:
            raise HttpFault(400, "bad_field", "error_bad_field", param="state", field="state", reason=f"one of {', '.join(JOB_STATES[1:])}")
        found = await self._view.jobs(state)
        jobs = [_told(request, job) for job in found.jobs]
        return answer({"jobs": jobs, "schedule": found.schedule, "names": found.names})

    async def run_job(self, request: web.Request) -> web.Response:
        job_id = row_id(request, "id")
        job = await self._view.run_job(job_id)
        if job is None:
            raise not_found()
        await self._record(request, "job.run", f"{job.kind} {job.key}")
        return answer(_told(request, job))

    async def usage(self, request: web.Request) -> web.Response:
        return answer({"rows": await self._reports.usage(query_int(request, "days", 30, low=1, high=3660))})

    async def audit(self, request: web.Request) -> web.Response:
        limit = query_int(request, "limit", 100, low=1, high=1000)

        def look(connection: sa.Connection) -> dict[str, object]:
            entries = audit.newest(connection, limit)
            return {
                "entries": entries,
                "places": place_titles.named(connection, {each for entry in entries for each in (entry.target, entry.address)}),
            }

        return answer(await self._db.read(look))

    async def delivery(self, request: web.Request) -> web.Response:
        delivery = await self._reports.delivery(request.match_info["delivery_id"])
        if delivery is None:
            raise not_found()
        return answer(delivery)

    async def config(self, request: web.Request) -> web.Response:
        return answer(await self._view.config_report())

    async def _record(self, request: web.Request, action: str, target: str) -> None:
        actor, now = actor_of(request), self._clock()

        def work(connection: sa.Connection) -> None:
            audit.record(connection, actor, action, at=now, target=target)

        await self._db.write(work)


def _told(request: web.Request, job: JobView) -> dict[str, object]:
    """A job with what its last failure means in words, beside the name of the fault that the log has."""
    return {**asdict(job), "error": failure(language_of(request), job.error_class) if job.error_class else ""}
