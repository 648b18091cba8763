"""What one dream job came to, what of it is booked, and what its person hears. Pure, but for the refused dream's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime

import sqlalchemy as sa

from gateway.buttons import Question, deciding
from gateway.config import Config
from memory import dream_store, proposal_store
from memory.diary import Happened, numbers
from memory.dream_guards import Refusal
from memory.dream_input import Day, Material
from memory.dream_rules import Judged
from memory.dream_store import Booking, Dream
from memory.proposal_store import Candidate
from memory.provenance import ChangedLine, Origin
from memory.scopes import ROOT

NOTHING_NEW = "nothing new"
NO_MODEL = "model"
CHANGED = "MEMORY.md was changed again and again"
REFUSED = {"lines": "dream_refused_lines", "bytes": "dream_refused_bytes", "empty": "dream_refused_empty"}
DIARY_WORDS = {
    "added": "diary_added", "changed": "diary_changed", "merged": "diary_merged", "dropped": "diary_dropped",
    "candidate": "diary_candidate", "left_out": "diary_left_out", "kept_out": "diary_kept_out", "outdated": "diary_outdated",
    "duplicate": "diary_duplicate", "temporary": "diary_temporary", "contradicted": "diary_contradicted", "secret": "diary_secret",
    "unsupported": "diary_unsupported", "no_evidence": "diary_no_evidence", "not_promoted": "diary_not_promoted", "barred": "diary_barred",
    "add_only": "diary_add_only", "no_room": "diary_no_room",
}  # fmt: skip


def can_dream(config: Config) -> bool:
    """Whether the model that dreams can hold the contract; the demo model cannot (WD-79)."""
    return config.account(config.dream.model or config.helper_model).provider != "demo"


def dreams_by_itself(config: Config, scope: str) -> bool:
    """Whether the memory of `scope` dreams after its daily summaries, unasked (WD-61, CF-13)."""
    return config.deep_dream_enabled and (config.dream.scopes == "all" or scope == str(ROOT))


@dataclass(slots=True)
class Night:
    """What one job's run came to."""

    trigger: str
    today: date
    force: bool = False
    days: int = 0
    taken: set[tuple[date, str]] = field(default_factory=set[tuple[date, str]])
    changes: list[Happened] = field(default_factory=list[Happened])
    dreams: int = 0
    waiting: bool = False
    refused: Refusal | None = None
    proposal_id: str = ""
    overtaken: bool = False

    def news(self) -> tuple[str, Mapping[str, object]]:
        """The text that says how it went, and its values."""
        if self.refused is not None:
            found = self.refused
            return REFUSED[found.kind], {"lost": found.lost, "total": found.total, "limit": found.limit, "id": self.proposal_id}
        if self.overtaken:
            return "dream_overtaken", {}
        if not self.dreams:
            return "dream_nothing_new", {}
        found = numbers(self.changes)
        return "dream_done_waiting" if found["candidates"] else "dream_done", found

    def left_of(self, days: Sequence[Day]) -> tuple[Day, ...]:
        """`days` without what earlier parts of this run have read."""
        return tuple(
            Day(date=day.date, lines=left)
            for day in days
            if (left := tuple(line for line in day.lines if (day.date, line.hash) not in self.taken)) or not day.lines
        )


def booking(judged: Judged, given: Material, dream_id: str) -> Booking:
    """What is to be booked when the answer stands: all lines that were read count as used, but for those whose facts found no room."""
    waits = {line.hash for line in judged.waiting}
    read = [line for line in given.day_lines if line.hash not in waits]
    human: dict[str, list[str]] = {}
    for line in read:
        if line.origin is Origin.HUMAN:
            human.setdefault(line.date.isoformat(), []).append(line.hash)
    removed = [old for line in judged.taken for old in line.replaces] + [drop.line for drop in judged.dropped]
    return Booking(
        removed=tuple(ChangedLine(text=old.text, section=old.section, row=old.row) for old in removed),
        added=tuple(ChangedLine(text=line.text, section=line.section, row=replace(line.row, run_id=dream_id)) for line in judged.taken),
        used=tuple(line.hash for line in read if line.row is not None),
        human=human,
        candidates=tuple(
            Candidate(
                text=line.text, section=line.section, row=replace(line.row, run_id=dream_id), replaces=tuple(old.hash for old in line.replaces)
            )
            for line in judged.candidates
        ),
    )


def question_of_refused(proposal_id: str, language: str) -> Question:
    """What can be done about a refused dream, as buttons below its news (WD-81)."""
    return deciding(language, proposal_id, approve="/memory dream apply", decline="/memory dream discard", show="/memory dream show")


def refuse(connection: sa.Connection, dream: Dream, found: Refusal, now: datetime) -> str:
    """Keep what was not written, for a person to decide; the days stay unused (WD-80, WD-81)."""
    refused = replace(dream, state="refused", reason=found.reason, ended_at=now)
    dream_store.put(connection, refused, now)
    payload = {"dream": dream.id, "refusal": asdict(found)}
    return proposal_store.propose(connection, dream.scope, "dream", payload, run_id=dream.id, now=now, expires_at=now + proposal_store.KEPT)
