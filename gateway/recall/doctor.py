"""What is the matter with recall and summaries in one chat, and what to do about it: a line for each state (RS-80, RS-160). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.recall.desk import Overview
from gateway.summaries.desk import Calendar, Whole
from memory.recall.summary_rows import State

STATES = ("source", "waiting", "unrelated", "rebuild", "model", "approval", "stuck", "readers", "zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`reason`: why the last reply recalled nothing, empty when it did or there was none; `shared`: others read this chat too."""

    overview: Overview
    summaries: Whole
    calendar: Calendar
    reason: str = ""
    shared: bool = False
    readers_unknown: int = 0


def findings(facts: Facts) -> list[str]:
    """The states that are so, in the order of `STATES`; none means that all is well."""
    chunks, vectors = facts.overview.totals, facts.overview.vectors
    rows = [*facts.summaries.rows, *facts.calendar.rows]
    without = chunks.chunks - chunks.off - chunks.vectorized
    uncovered = bool(facts.summaries.uncovered) or bool(facts.calendar.missing)
    so = {
        "source": vectors.vectors in ("off", "failed"),
        "waiting": vectors.vectors in ("building", "ok") and without > 0,
        "unrelated": facts.reason == "nothing_relevant",
        "rebuild": chunks.outdated > 0,
        "model": uncovered and facts.summaries.allowed and not facts.summaries.has_model,
        "approval": any(row.summary.state is State.WAITING for row in rows),
        "stuck": any(each.reason in ("waiting", "failed") and not each.running for each in facts.calendar.missing),
        "readers": facts.shared and facts.readers_unknown > 0,
        "zone": bool(facts.calendar.wrong_zone),
    }
    return [state for state in STATES if so[state]]
