"""What the pages show of the rest of the gateway: frozen values, and the two doors through which the composition root hands them in.

The values are the JSON of docs/http-api.md, field by field. Times are aware UTC; `_s` is seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from gateway.config.faults import Fault
from gateway.overrides import Effective
from gateway.person import Person
from gateway.reports import RecentError

# -- GET /api/me -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The default model; `demo` is the built-in one, which the page says plainly (WO-1)."""

    name: str
    provider: str
    demo: bool
    sees_images: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`text_max` in characters of one message, `attachments_max` files of at most `attachment_bytes` each."""

    text_max: int
    attachments_max: int
    attachment_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFacts:
    name: str
    args: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterFacts:
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What this gateway offers the asker: `commands` only those of their role, in their language; `inspects`: whether prompts are shown to them."""

    guests: bool
    model: ModelFacts
    limits: Limits
    version: str
    commands: tuple[CommandFacts, ...]
    characters: tuple[CharacterFacts, ...]
    inspects: bool = False


class PageView(Protocol):
    def about(self, person: Person | None, language: str) -> About:
        """Called with every load of the page: from memory, without waiting. `person` is None signed out."""
        ...


# -- operating ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultView:
    """One fault of the configuration: `path` is the key's, `line` and `column` count from 1, 0 where there is none (WO-32)."""

    path: str
    line: int
    column: int
    message: str
    hint: str = ""

    @classmethod
    def of(cls, fault: Fault) -> FaultView:
        return cls(path=fault.path, line=fault.line, column=fault.column, message=fault.message, hint=fault.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigView:
    path: str
    loaded_at: datetime
    faults: tuple[FaultView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReport:
    """`effective` has its secrets masked already (WO-64); `settled`: the keys that are not at their defaults because somebody set them."""

    path: str
    loaded_at: datetime
    faults: tuple[FaultView, ...]
    effective: Mapping[str, object]
    settled: tuple[Effective, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """One enabled account (CH-210, CH-213). `state`: starting, ready, degraded, auth_required or stopped; `proven_at`: its last proof of hearing.
    `last_error_delivery`: the delivery that it was about, if any; `login`: the account is logged in by scanning a code."""

    channel: str
    account: str
    state: str
    reason: str = ""
    proven_at: datetime | None = None
    last_in: datetime | None = None
    last_out: datetime | None = None
    backlog: int = 0
    oldest_waiting_s: float | None = None
    gate_until: datetime | None = None
    last_error: str = ""
    last_error_delivery: str = ""
    login: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    name: str
    provider: str
    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    waiting: int = 0
    running: int = 0
    parked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxCounts:
    new: int = 0
    running: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCounts:
    queued: int = 0
    unknown: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    version: str
    uptime_s: float
    ready: bool
    channels: tuple[ChannelView, ...]
    model: ModelHealth
    jobs: JobCounts
    inbox: InboxCounts
    outbox: OutboxCounts
    config: ConfigView
    errors: tuple[RecentError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    id: int
    kind: str
    key: str
    scope: str
    state: str
    attempts: int
    not_before: datetime
    error_class: str
    result: object
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """When `kind` runs next for `scope`; `zone` is the one in which its day begins."""

    kind: str
    scope: str
    next_run: datetime | None
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsView:
    """`names`: what people call the scopes of these."""

    jobs: tuple[JobView, ...]
    schedule: tuple[ScheduleView, ...]
    names: Mapping[str, str] = field(default_factory=dict[str, str])


class OperatorView(Protocol):
    """What operators see of the running gateway. Called for admins and owners only; each call is one look, kept short."""

    async def overview(self, language: str = "en") -> Overview: ...

    async def jobs(self, state: str) -> JobsView:
        """The jobs in `state` ("" = all), newest first, at most some hundred."""
        ...

    async def run_job(self, job_id: int) -> JobView | None:
        """Let a waiting or parked job run now and return it; as it is when it runs or is done; None for an unknown one."""
        ...

    async def config_report(self) -> ConfigReport: ...
