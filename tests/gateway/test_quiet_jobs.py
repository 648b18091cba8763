"""Work in the background posts nothing in a group, whatever kind of job it is (RS-197).

The kinds are those that a running gateway claims: one that is added and stands in neither table fails here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine, event

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway import attempts, followups, housekeeping, index_rebuild, link_files, memory_export, scope_removal, titles, trimming
from gateway.dreams import job as dream_job
from gateway.entries import jobs as entries
from gateway.jobs.table import Job, enqueue
from gateway.saved import deep_gate
from gateway.summaries import plan as summary_plan
from gateway.summaries import restating
from gateway.summaries.calendar_state import FOLD
from gateway.summaries.day_pieces import DAY
from gateway.tasks import jobs as task_jobs
from memory import conversations
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary
from memory.schema import jobs, outbox, spaces
from tests.gateway.nights import each_said
from tests.gateway.test_memory_files import store
from tests.harness import Running, eventually, running

SPACE, SCOPE = "s-quietgroup", "spaces/s-quietgroup"
WORDS = 30
REPORTS = {
    followups.KIND: "the report of what a person asked for in that chat",
    task_jobs.KIND: "a reminder or task that a person set for that chat",
}
PAYLOADS: Mapping[str, Mapping[str, Any]] = {
    titles.KIND: {},
    housekeeping.KIND: {},
    attempts.JUDGE: {},
    summary_plan.DAILY: {"date": "2026-03-02", "zone": "UTC"},
    summary_plan.TRIM: {"first": 1, "last": WORDS},
    summary_plan.OVERFLOW: {"first": 1, "last": WORDS},
    trimming.ROLLING: {},
    DAY: {"date": "2026-03-03", "audience": ""},
    FOLD: {},
    restating.KIND: {},
    entries.KIND: {"what": entries.BACKFILL},
    dream_job.KIND: {"date": "2026-03-04", "force": True, "days": 5},
    deep_gate.KIND: {"last": WORDS},
    index_rebuild.KIND: {},
    memory_export.KIND: {"person": "", "language": "en"},
    link_files.KIND: {"gone": "people/p-gonegonego", "heading": "From before"},
    scope_removal.KIND: {},
}
DAILY = (summary_plan.DAILY, summary_plan.TRIM, summary_plan.OVERFLOW)
PROFILES = {trimming.ROLLING: "companion", DAY: "calendar", FOLD: "calendar", restating.KIND: "calendar"}
WORK = {*DAILY, *PROFILES, entries.KIND}  # that finds something to do here


def answer(request: ModelRequest) -> Reply:
    if request.purpose == "summary":
        return each_said(request)
    return json.dumps({"title": "Tea", "text": "They spoke of tea.", "details": []}) if request.purpose != "reply" else "Yes."


@contextmanager
def claimed() -> Generator[set[str]]:
    """The kinds that runners ask the table for."""
    found: set[str] = set()

    def look(_connection: object, _clause: object, several: Any, single: Any, _options: object) -> None:
        for values in (*several, single):
            if isinstance(values, dict) and {"token", "kinds", "served"} <= cast("dict[str, Any]", values).keys():
                found.update(cast("dict[str, list[str]]", values)["kinds"])

    event.listen(Engine, "before_execute", look)
    try:
        yield found
    finally:
        event.remove(Engine, "before_execute", look)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running]:
    model: Mapping[str, Any] = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}
    async with running(tmp_path, ScriptedModel(answer), config={"model": model, "companion": {"messages": 10, "block": 5}}) as made:
        yield made


def group(gateway: Running, kind: str, job: Callable[[str, list[int]], Job]) -> int:
    """A group that talked for a week, weeks ago; all but the newest messages left its window. The id of the job that is queued for it."""
    begin = datetime(2026, 3, 2, 10, tzinfo=UTC)

    def work(c: sa.Connection) -> int:
        c.execute(sa.insert(spaces).values(
            id=SPACE, channel="loopback", account="main", platform_space_id="g1", title="Tea", allowed=True, created_at=begin,
        ))  # fmt: skip
        chat = conversations.create_conversation(
            c, now=begin, key="loopback:main:g1", channel="loopback", account="main", kind="group", space_id=SPACE
        )
        profile = PROFILES.get(kind, "assistant")
        conversations.change(c, chat, profile=profile)
        seqs = [
            conversations.add_message(
                c, now=begin + timedelta(hours=5 * n), conversation_id=chat, role="user", origin="person", scope=SCOPE, author_name="Ann",
                text=f"We drank tea number {n}.",
            ).seq
            for n in range(WORDS)
        ]  # fmt: skip
        conversations.move_edge(c, chat, seqs[-11])
        if profile == "calendar":
            for at, day in enumerate(("2026-03-02", "2026-03-04", "2026-03-05")):
                new = NewSummary(
                    conversation_id=chat, kind=Kind.DAY, text="They spoke of tea for a long time. " * 9, sources=seqs[at : at + 1], local_date=day,
                )  # fmt: skip
                summary_rows.add(c, new, begin)
        if kind == restating.KIND:
            summary_rows.mark_changed(c, chat, seqs[0], seqs[0], forgotten=False)
        return enqueue(c, job(chat, seqs))

    return store(gateway, work)


@pytest.mark.rule("RS-197")
@pytest.mark.case("K31", "WP-22")
@pytest.mark.parametrize("kind", PAYLOADS)
async def test_no_job_says_anything_in_a_group(gateway: Running, kind: str) -> None:
    def job(chat: str, seqs: list[int]) -> Job:
        numbers: dict[str, int] = {name: seqs[PAYLOADS[kind][name] - 1] for name in ("first", "last") if name in PAYLOADS[kind]}
        payload: dict[str, Any] = {"conversation": chat, **PAYLOADS[kind], **numbers}
        return Job(kind=kind, key=f"quiet {kind}", scope=SCOPE, payload=payload, local_date=str(payload.get("date", "")))

    number = group(gateway, kind, job)
    query = sa.select(jobs.c.state, jobs.c.error_class, jobs.c.result).where(jobs.c.id == number)

    async def ended() -> Any:
        row = store(gateway, lambda c: c.execute(query).one_or_none())
        return (row or "gone") if row is None or row.state in ("done", "parked") or row.error_class else None

    row = await eventually(ended, within_s=40)
    if kind in WORK:
        assert (row.state, "skipped" in row.result) == ("done", False), "it did what it is for"
    assert store(gateway, lambda c: c.execute(sa.select(outbox.c.address, outbox.c.kind)).all()) == []


@pytest.mark.rule("RS-197")
async def test_every_kind_of_job_is_known_to_be_silent_or_to_report_what_a_person_asked_for(tmp_path: Path) -> None:
    with claimed() as kinds:
        async with running(tmp_path, ScriptedModel(answer)):
            await eventually(lambda: _both(kinds))
    assert kinds == {*PAYLOADS, *REPORTS}


async def _both(kinds: set[str]) -> bool:
    """Both runners have asked."""
    return {titles.KIND, task_jobs.KIND} <= kinds
