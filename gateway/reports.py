"""What operators read straight from the tables: usage, counts, recent errors, and the way of one message (CH-217, WO-30).

Reading only, one statement each; nothing here shows the text of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from memory.database import Database
from memory.schema import errors, inbox, jobs, model_calls, outbox, people, spaces, turns
from memory.scopes import Kind

_DAY_US = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)

_SUCCEEDED = "ok"  # of a model call; any other outcome is the code of an error

_DAY = (sa.type_coerce(model_calls.c.at, sa.BigInteger) // sa.literal_column(str(_DAY_US), sa.BigInteger)).label("day")
_PERSON = sa.func.coalesce(people.c.name, model_calls.c.person_id).label("person")
_USAGE = (
    sa.select(
        _DAY,
        _PERSON,
        model_calls.c.channel,
        model_calls.c.purpose,
        model_calls.c.model,
        sa.func.count().label("calls"),
        sa.func.sum(sa.case((model_calls.c.outcome == _SUCCEEDED, 0), else_=1)).label("failed"),
        sa.func.sum(model_calls.c.input_tokens).label("input_tokens"),
        sa.func.sum(model_calls.c.output_tokens).label("output_tokens"),
        sa.func.sum(model_calls.c.cached_tokens).label("cached_tokens"),
        sa.func.sum(model_calls.c.cost).label("cost"),
    )
    .select_from(model_calls.outerjoin(people, people.c.id == model_calls.c.person_id))
    .where(model_calls.c.at >= sa.bindparam("since"))
    .group_by(_DAY, model_calls.c.person_id, people.c.name, model_calls.c.channel, model_calls.c.purpose, model_calls.c.model)
    .order_by(_DAY.desc(), _PERSON, model_calls.c.channel, model_calls.c.purpose, model_calls.c.model)
)

_COUNTS = sa.union_all(
    *(
        sa.select(sa.literal(table.name).label("name"), table.c.state, sa.func.count().label("number"))
        .where(table.c.state.in_(states))
        .group_by(table.c.state)
        for table, states in (
            (jobs, ("waiting", "running", "parked")),
            (inbox, ("new", "running", "dead")),
            (outbox, ("queued", "unknown", "failed")),
        )
    )
)

_ERRORS = sa.select(errors).order_by(errors.c.id.desc()).limit(sa.bindparam("limit"))

# An answer belongs to the message by its turn; a notice made without a turn, by the delivery id itself.
_OF_DELIVERY = sa.or_(sa.and_(outbox.c.turn_id == inbox.c.turn_id, inbox.c.turn_id != ""), outbox.c.delivery_id == inbox.c.delivery_id)
_DELIVERY = (
    sa.select(
        inbox,
        *(turns.c[name].label(f"turn_{name}") for name in ("state", "attempt", "model", "error_code", "started_at", "ended_at")),
        *(
            outbox.c[name].label(f"part_{name}")
            for name in ("part_id", "kind", "state", "attempts", "unknowns", "reason", "platform_ids", "attempted_at", "created_at", "updated_at")
        ),
    )
    .select_from(inbox.outerjoin(turns, turns.c.id == inbox.c.turn_id).outerjoin(outbox, _OF_DELIVERY))
    .where(inbox.c.delivery_id == sa.bindparam("delivery"))
    .order_by(outbox.c.id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Model calls of one day (UTC) for one person ("" = background work), channel, purpose and model. `cost` is in the unit of the prices."""

    day: date
    person: str
    channel: str
    purpose: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentError:
    at: datetime
    delivery_id: str
    where: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTurn:
    id: str
    state: str
    attempt: int
    model: str
    error_code: str
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPart:
    """One message that went out, or should have. `platform_ids` are the platform's own, once it has accepted it."""

    part_id: str
    kind: str
    state: str
    attempts: int
    unknowns: int
    reason: str
    platform_ids: tuple[str, ...]
    attempted_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event from its receipt to the platform ids of what answered it. `rule` says why it was ignored or died."""

    delivery_id: str
    channel: str
    account: str
    address: str
    kind: str
    state: str
    rule: str
    attempts: int
    person_id: str
    conversation_id: str
    message_id: str
    received_at: datetime
    finished_at: datetime | None
    turn: DeliveryTurn | None
    parts: tuple[DeliveryPart, ...]


_SCOPE_NAMES = sa.union_all(
    sa.select(people.c.scope, people.c.name).where(people.c.scope.in_(sa.bindparam("scopes", expanding=True))),
    sa.select(sa.literal(f"{Kind.SPACE}/") + spaces.c.id, spaces.c.title).where(spaces.c.id.in_(sa.bindparam("places", expanding=True))),
)


class Reports:
    def __init__(self, db: Database, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._clock = clock

    async def usage(self, days: int) -> list[UsageRow]:
        """The last `days` days of UTC, today included, newest first."""
        midnight = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)

        def work(connection: sa.Connection) -> list[UsageRow]:
            return [_usage_row(row) for row in connection.execute(_USAGE, {"since": midnight - timedelta(days=days - 1)})]

        return await self._db.read(work)

    async def counts(self) -> dict[str, dict[str, int]]:
        """How many rows of `jobs`, `inbox` and `outbox` are in which of the states that ask for attention; states without rows are left out."""

        def work(connection: sa.Connection) -> dict[str, dict[str, int]]:
            found: dict[str, dict[str, int]] = {"jobs": {}, "inbox": {}, "outbox": {}}
            for row in connection.execute(_COUNTS):
                found[row.name][row.state] = row.number
            return found

        return await self._db.read(work)

    async def scope_names(self, scopes: Collection[str]) -> dict[str, str]:
        """What people call these memories: a person's name or a place's title, by scope. Those without one are left out."""
        places = [scope.removeprefix(f"{Kind.SPACE}/") for scope in scopes]

        def work(connection: sa.Connection) -> dict[str, str]:
            return {scope: name for scope, name in connection.execute(_SCOPE_NAMES, {"scopes": list(scopes), "places": places}) if name}

        return await self._db.read(work)

    async def recent_errors(self, limit: int) -> list[RecentError]:
        """Newest first."""

        def work(connection: sa.Connection) -> list[RecentError]:
            rows = connection.execute(_ERRORS, {"limit": limit})
            return [RecentError(at=row.at, delivery_id=row.delivery_id, where=row.source, message=row.message) for row in rows]

        return await self._db.read(work)

    async def note_error(self, delivery_id: str, where: str, message: str) -> None:
        """Keep a fault for the operators' page. `message` names what went wrong, without secrets or anybody's words."""
        row = {"at": self._clock(), "delivery_id": delivery_id, "source": where, "message": message}
        await self._db.write(lambda connection: connection.execute(sa.insert(errors), row).close())

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """The whole way of one event, found in one query; None for an unknown id."""
        return await self._db.read(lambda connection: _delivery(connection.execute(_DELIVERY, {"delivery": delivery_id}).all()))


def _usage_row(row: Any) -> UsageRow:
    return UsageRow(
        day=_FIRST_DAY + timedelta(days=row.day),
        person=row.person,
        channel=row.channel,
        purpose=row.purpose,
        model=row.model,
        calls=row.calls,
        failed=int(row.failed),
        input_tokens=int(row.input_tokens),
        output_tokens=int(row.output_tokens),
        cached_tokens=int(row.cached_tokens),
        cost=float(row.cost),
    )


def _delivery(rows: Any) -> Delivery | None:
    if not rows:
        return None
    first = rows[0]
    turn = DeliveryTurn(
        id=first.turn_id,
        state=first.turn_state,
        attempt=first.turn_attempt,
        model=first.turn_model,
        error_code=first.turn_error_code,
        started_at=first.turn_started_at,
        ended_at=first.turn_ended_at,
    ) if first.turn_state else None  # fmt: skip
    return Delivery(
        delivery_id=first.delivery_id,
        channel=first.channel,
        account=first.account,
        address=first.address,
        kind=first.kind,
        state=first.state,
        rule=first.rule,
        attempts=first.attempts,
        person_id=first.person_id,
        conversation_id=first.conversation_id,
        message_id=first.message_id,
        received_at=first.received_at,
        finished_at=first.finished_at,
        turn=turn,
        parts=tuple(_part(row) for row in rows if row.part_part_id is not None),
    )


def _part(row: Any) -> DeliveryPart:
    return DeliveryPart(
        part_id=row.part_part_id,
        kind=row.part_kind,
        state=row.part_state,
        attempts=row.part_attempts,
        unknowns=row.part_unknowns,
        reason=row.part_reason,
        platform_ids=tuple(row.part_platform_ids or ()),
        attempted_at=row.part_attempted_at,
        created_at=row.part_created_at,
        updated_at=row.part_updated_at,
    )
