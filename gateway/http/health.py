"""Whether the process lives, whether it is ready, and what it counts (WO-37, CH-214)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from aiohttp import web

from gateway.http.base import CLIENT, answer, require_person
from gateway.http.views import ChannelView, FaultView
from gateway.metrics import EXPOSITION_TYPE, Metrics


class Phase(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """Something beside the channels that work leans on: model, embedder, index, workspace. Its fault is shown but makes nothing unready."""

    name: str
    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """`channels`: every enabled account. `config_faults`: of the newest `config.json` when it was refused (WO-31)."""

    phase: Phase
    database_ok: bool
    channels: tuple[ChannelView, ...]
    dependencies: tuple[Dependency, ...] = ()
    config_faults: tuple[FaultView, ...] = ()

    @property
    def ready(self) -> bool:
        """CH-214: running, the database answers, and at least one channel hears."""
        return self.phase is Phase.RUNNING and self.database_ok and any(channel.state == "ready" for channel in self.channels)


async def _nothing() -> None:
    return None


class HealthRoutes:
    """`readiness` is asked at every call and must answer within a second: it looks at what is known, and probes nothing but the database."""

    def __init__(
        self,
        *,
        readiness: Callable[[], Awaitable[Readiness]],
        metrics: Metrics,
        clock: Callable[[], datetime],
        look: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        """`look` brings the gauges that are read from the store up to date, before they are shown."""
        self._look = look
        self._readiness = readiness
        self._metrics = metrics
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/healthz", self.healthz), web.get("/readyz", self.readyz), web.get("/metrics", self.metrics)]

    async def healthz(self, request: web.Request) -> web.Response:
        return answer({"ok": True})

    async def readyz(self, request: web.Request) -> web.Response:
        readiness = await self._readiness()
        return answer(self._shown(readiness, whole=request[CLIENT].local), status=200 if readiness.ready else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        """From this machine, or with an admin's token; a proxy on this machine is not this machine (WP-10)."""
        if not request[CLIENT].local:
            require_person(request, "admin")
        await self._look()
        return web.Response(body=self._metrics.exposition(), headers={"Content-Type": EXPOSITION_TYPE})

    def _shown(self, readiness: Readiness, *, whole: bool) -> dict[str, object]:
        """Everybody may look, so reasons are for this machine alone: they can quote an address or a value, as a configuration fault's text can."""
        return {
            "ready": readiness.ready,
            "phase": readiness.phase,
            "database": readiness.database_ok,
            "channels": [self._channel(channel, whole=whole) for channel in readiness.channels],
            "dependencies": [
                {"name": each.name, "ok": each.ok, "reason": each.reason if whole else ""} for each in readiness.dependencies
            ],
            "config_faults": [{"path": fault.path, "line": fault.line} for fault in readiness.config_faults],
        }

    def _channel(self, channel: ChannelView, *, whole: bool) -> dict[str, object]:
        age_s = round((self._clock() - channel.proven_at).total_seconds(), 1) if channel.proven_at else None
        reason = channel.reason if whole else ""
        return {"channel": channel.channel, "account": channel.account, "state": channel.state, "reason": reason, "proof_age_s": age_s}
