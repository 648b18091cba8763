"""A whole web side on an SQLite database, spoken to through a real socket: for tests of routes. Nothing of ours is patched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from argon2 import PasswordHasher

from agent.errors import ModelError
from gateway.audit import CONSOLE
from gateway.config import Web
from gateway.credentials import VisitCache
from gateway.error_log import ErrorLog
from gateway.http.account import AccountRoutes
from gateway.http.auth import COOKIE, Door
from gateway.http.base import SERVER_OPTIONS, new_app
from gateway.http.health import HealthRoutes, Phase, Readiness
from gateway.http.model_setup import Endpoint, ModelRoutes
from gateway.http.operator import OperatorRoutes
from gateway.http.operator_people import PeopleRoutes
from gateway.http.views import (
    About,
    ChannelView,
    CharacterFacts,
    CommandFacts,
    ConfigReport,
    ConfigView,
    InboxCounts,
    JobCounts,
    JobsView,
    JobView,
    Limits,
    ModelFacts,
    ModelHealth,
    OutboxCounts,
    Overview,
    ScheduleView,
)
from gateway.login_links import LoginLinks
from gateway.logs import Redactor
from gateway.metrics import Metrics, new_metrics
from gateway.passwords import Passwords
from gateway.people import People
from gateway.person import Person
from gateway.reports import Reports
from gateway.sessions import Opened, Sessions
from gateway.tokens import ApiTokens
from memory.database import Database
from memory.errors import StoreUnavailable
from tests.conftest import FakeClock

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def quick_passwords() -> Passwords:
    """Argon2 at its lowest cost."""
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


class Page:
    def about(self, person: Person | None, language: str) -> About:
        return About(
            guests=False,
            model=ModelFacts(name="tiny", provider="demo", demo=True, sees_images=False),
            limits=Limits(text_max=16000, attachments_max=10, attachment_bytes=20_000_000),
            version="0.1.0",
            commands=(CommandFacts(name="help", args="", help=language),),
            characters=(CharacterFacts(id="default", name="Yume"),),
        )


JOB = JobView(
    id=7, kind="dream", key="root 2026-03-13", scope="root", state="parked", attempts=3, not_before=START, error_class="ModelBusy", result=None,
    updated_at=START,
)  # fmt: skip


class Operating:
    """What operators see, fixed; `runs` notes the jobs that were started."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    async def overview(self, language: str = "en") -> Overview:
        return Overview(
            version="0.1.0",
            uptime_s=12.5,
            ready=True,
            channels=(ChannelView(channel="web", account="main", state="ready", proven_at=START),),
            model=ModelHealth(name="tiny", provider="demo", ok=True),
            jobs=JobCounts(waiting=1),
            inbox=InboxCounts(),
            outbox=OutboxCounts(),
            config=ConfigView(path="config.json", loaded_at=START),
            errors=(),
        )

    async def jobs(self, state: str) -> JobsView:
        jobs = tuple(job for job in (JOB,) if state in ("", job.state))
        return JobsView(jobs=jobs, schedule=(ScheduleView(kind="dream", scope="root", next_run=START + timedelta(days=1), zone="Asia/Tokyo"),))

    async def run_job(self, job_id: int) -> JobView | None:
        if job_id != JOB.id:
            return None
        self.runs.append(job_id)
        return JOB

    async def config_report(self) -> ConfigReport:
        return ConfigReport(path="config.json", loaded_at=START, faults=(), effective={"model": {"api_key": "***"}})


@dataclass(kw_only=True)
class House:
    """`settings` may be replaced while it runs, as a changed configuration does."""

    db: Database
    clock: FakeClock
    people: People
    sessions: Sessions
    tokens: ApiTokens
    links: LoginLinks
    reports: Reports
    cache: VisitCache
    door: Door
    app: web.Application
    metrics: Metrics
    operating: Operating
    secrets_file: Path
    readiness: Readiness
    probe: Callable[[Endpoint], str] = field(default=lambda endpoint: f"hello from {endpoint.name}")
    settings: Web = field(default_factory=Web)
    client: TestClient[Any, Any] = field(init=False)
    left: asyncio.Event = field(default_factory=asyncio.Event)  # set when the peer of /api/endless is gone

    async def browser(self, person: Person) -> tuple[dict[str, str], Opened]:
        """The headers with which that person's browser writes, and the session."""
        opened = await self.sessions.open(person.id, "a browser")
        return {"Cookie": f"{COOKIE}={opened.token}", "X-CSRF-Token": opened.csrf}, opened

    async def bearer(self, person: Person) -> dict[str, str]:
        _, text = await self.tokens.make(CONSOLE, person.id, "a program")
        return {"Authorization": f"Bearer {text}"}

    def stand_ins(self) -> list[web.RouteDef]:
        """Handlers that do what a test needs seen: a stream, and the ways in which a handler goes wrong."""

        async def stream(request: web.Request) -> web.StreamResponse:
            return web.Response(text=": open\n\n", content_type="text/event-stream")

        async def broken(request: web.Request) -> web.StreamResponse:
            raise ModelError("the key sk-TEST-1111 leaked into an error")

        async def full(request: web.Request) -> web.StreamResponse:
            raise StoreUnavailable("the disk is full")

        async def half(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"half an answer")
            raise ModelError("and no more")

        async def endless(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            try:
                while True:
                    await response.write(b"more " * 1000)
                    await asyncio.sleep(0.001)
            finally:
                self.left.set()

        return [
            web.get("/api/chats/{id}/events", stream),
            web.post("/api/broken", broken),
            web.post("/api/full", full),
            web.get("/api/half", half),
            web.get("/api/endless", endless),
        ]


@asynccontextmanager
async def open_house(db: Database, clock: FakeClock, folder: Path) -> AsyncIterator[House]:
    with quick_passwords() as passwords:
        people, cache = People(db, clock, passwords), VisitCache(clock)
        people.watch(cache.forget_person)
        sessions, tokens, links, reports = Sessions(db, clock, cache), ApiTokens(db, clock, cache), LoginLinks(db, clock), Reports(db, clock)
        metrics, operating = new_metrics(), Operating()
        door = Door(lambda: house.settings, people, sessions, tokens, cache)
        app = new_app(door)
        house = House(
            db=db, clock=clock, people=people, sessions=sessions, tokens=tokens, links=links, reports=reports, cache=cache, door=door, app=app,
            metrics=metrics, operating=operating, secrets_file=folder / "secrets.env",
            readiness=Readiness(
                phase=Phase.RUNNING, database_ok=True, channels=(ChannelView(channel="web", account="main", state="ready", proven_at=clock.now),)
            ),
        )  # fmt: skip

        async def readiness() -> Readiness:
            return house.readiness

        async def probe(endpoint: Endpoint) -> str:
            await asyncio.sleep(0)
            return house.probe(endpoint)

        app.add_routes(AccountRoutes(people=people, sessions=sessions, links=links, tokens=tokens, page=Page(), clock=clock).routes())
        app.add_routes(PeopleRoutes(people=people, links=links, settings=lambda: house.settings).routes())
        app.add_routes(OperatorRoutes(db=db, clock=clock, view=operating, reports=reports).routes())
        app.add_routes(ModelRoutes(probe=probe, secrets_file=house.secrets_file, db=db, clock=clock, ports=()).routes())
        app.add_routes(HealthRoutes(readiness=readiness, metrics=metrics, clock=clock).routes())
        app.add_routes(house.stand_ins())
        server = TestServer(app)
        await server.start_server(**SERVER_OPTIONS)
        errors = ErrorLog()
        errors.addFilter(Redactor())
        logging.getLogger().addHandler(errors)
        keeping = asyncio.ensure_future(errors.run(reports))
        try:
            async with TestClient(server) as house.client:
                yield house
        finally:
            keeping.cancel()
            logging.getLogger().removeHandler(errors)
