"""What waits for a person's yes: refused dreams, candidates, tools' changes, questions about forgetting (WD-68, WD-81, WD-92, WD-105).

Once it is decided, a proposal's words are gone. Plain functions on a `Connection`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from memory.file_schema import proposals
from memory.ids import opaque
from memory.layout import CURATED
from memory.provenance import LineRow, row_json, row_of_json

KEPT = timedelta(days=30)  # an open proposal (WD-81)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`kind`: dream, candidate, change or forget; `payload`: of that kind; JSON."""

    id: str
    scope: str
    kind: str
    payload: Mapping[str, Any]
    state: str = "open"
    path: str = ""
    run_id: str = ""
    person_id: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A line that waits for a person's yes (WD-68). `replaces`: hashes of old lines it would take the place of."""

    text: str
    section: str
    row: LineRow
    replaces: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "section": self.section, "row": row_json(self.row), "replaces": list(self.replaces)}

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> Candidate:
        return Candidate(text=value["text"], section=value["section"], row=row_of_json(value["row"]), replaces=tuple(value["replaces"]))


_OPEN = (
    sa.select(proposals)
    .where(proposals.c.scope == sa.bindparam("the_scope"), proposals.c.state == "open", proposals.c.expires_at > sa.bindparam("now"))
    .order_by(proposals.c.created_at, proposals.c.id)
)
_ONE = sa.select(proposals).where(proposals.c.scope == sa.bindparam("the_scope"), proposals.c.id == sa.bindparam("the_id"))


def propose(
    connection: sa.Connection,
    scope: str,
    kind: str,
    payload: Mapping[str, Any],
    *,
    now: datetime,
    expires_at: datetime,
    run_id: str = "",
    person_id: str = "",
    path: str = CURATED,
) -> str:
    """Ask a person; returns the proposal's id. A candidate that waits already is not asked about twice."""
    if kind == "candidate":
        for each in open_proposals(connection, scope, now):
            if each.kind == kind and each.payload["text"] == payload["text"]:
                return each.id
    proposal_id = opaque("q", 10)
    values = {
        "id": proposal_id, "scope": scope, "kind": kind, "state": "open", "path": path, "payload": dict(payload), "run_id": run_id,
        "person_id": person_id, "created_at": now, "expires_at": expires_at,
    }  # fmt: skip
    connection.execute(sa.insert(proposals), values)
    return proposal_id


def open_proposals(connection: sa.Connection, scope: str, now: datetime) -> list[Proposal]:
    """What waits for a yes, oldest first."""
    return [_proposal(row) for row in connection.execute(_OPEN, {"the_scope": scope, "now": now})]


def find(connection: sa.Connection, scope: str, proposal_id: str) -> Proposal | None:
    """Of this scope only; also a decided one."""
    row = connection.execute(_ONE, {"the_scope": scope, "the_id": proposal_id}).one_or_none()
    return None if row is None else _proposal(row)


def decide(connection: sa.Connection, scope: str, proposal_id: str, state: str, now: datetime) -> bool:
    """`applied` or `discarded`; its words go. False when it was decided before."""
    done = sa.update(proposals).where(proposals.c.scope == scope, proposals.c.id == proposal_id, proposals.c.state == "open")
    return connection.execute(done.values(state=state, decided_at=now, payload=None)).rowcount > 0


def delete(connection: sa.Connection, ids: Collection[str]) -> None:
    connection.execute(sa.delete(proposals).where(proposals.c.id.in_(ids)))


def _proposal(row: sa.Row[Any]) -> Proposal:
    return Proposal(
        id=row.id,
        scope=row.scope,
        kind=row.kind,
        payload=row.payload or {},
        state=row.state,
        path=row.path,
        run_id=row.run_id,
        person_id=row.person_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
