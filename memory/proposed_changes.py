"""Changes of a file that wait for a person's yes, for foreign text was read before they were thought of (WD-105): proposals of kind `change`.

Plain functions on a `Connection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory import proposal_store
from memory.proposal_store import KEPT, Proposal

KIND = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The change as it was asked for, so that it can be made on a newer text: `old` empty adds the line `new`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedChange:
    """`removed` and `added`: the exact lines the person is shown; `based_on`: SHA-256 in hex of the file they belong to, empty for none; `text`: the
    whole file with the change; `passage`: None for a file said wholly anew; `sources`, `speakers`: of the turn, for the lines' provenance."""

    id: str = ""
    scope: str = ""
    path: str = ""
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    based_on: str = ""
    text: str = ""
    passage: Passage | None = None
    sources: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    run_id: str = ""
    person_id: str = ""


def open_changes(connection: sa.Connection, scope: str, now: datetime) -> tuple[ProposedChange, ...]:
    """What waits in a scope, oldest first."""
    return tuple(_change(each) for each in proposal_store.open_proposals(connection, scope, now) if each.kind == KIND)


def find(connection: sa.Connection, scope: str, change_id: str, now: datetime) -> ProposedChange | None:
    """One that waits in this scope; None when there is none, it was decided, or its time is over."""
    return next((change for change in open_changes(connection, scope, now) if change.id == change_id), None)


def propose(connection: sa.Connection, change: ProposedChange, now: datetime) -> str:
    """Keep a change; its id. The same change of the same file that waits already is not kept twice."""
    for waiting in open_changes(connection, change.scope, now):
        if (waiting.path, waiting.text) == (change.path, change.text):
            return waiting.id
    payload: dict[str, Any] = {
        "removed": list(change.removed), "added": list(change.added), "based_on": change.based_on, "text": change.text,
        "passage": None if change.passage is None else {"old": change.passage.old, "new": change.passage.new},
        "sources": list(change.sources), "speakers": list(change.speakers),
    }  # fmt: skip
    return proposal_store.propose(
        connection, change.scope, KIND, payload, now=now, expires_at=now + KEPT, run_id=change.run_id, person_id=change.person_id, path=change.path
    )


def _change(row: Proposal) -> ProposedChange:
    passage = row.payload["passage"]
    return ProposedChange(
        id=row.id, scope=row.scope, path=row.path, removed=tuple(row.payload["removed"]), added=tuple(row.payload["added"]),
        based_on=row.payload["based_on"], text=row.payload["text"],
        passage=None if passage is None else Passage(old=passage["old"], new=passage["new"]), sources=tuple(row.payload["sources"]),
        speakers=tuple(row.payload["speakers"]), run_id=row.run_id, person_id=row.person_id,
    )  # fmt: skip
