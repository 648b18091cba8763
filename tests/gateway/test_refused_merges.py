"""Merges whose answer is no good: the originals stay, the update ends, and the same is not asked again until something is another (RS-111)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from agent.llm.port import Finish, ModelRequest
from agent.llm.scripted import End, Reply, Say, ScriptedModel
from gateway.entries import jobs as entries
from gateway.entries import refused_merges
from gateway.jobs.table import Job, JobRow, enqueue, read_job
from gateway.models import Models
from gateway.summaries.calendar_state import fold_job
from gateway.trimming import rolling_job
from memory import conversations
from memory.database import Database
from memory.recall import entry_rows, summary_rows
from memory.recall.answers import Answer
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, NewSummary, State
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse
from tests.gateway.rows_house import RowsHouse, utc_now_at

TEXT = "They talked for a long time about the boat and its planks, and about the paint that Ana brings. "
LONG = {
    "en": TEXT,
    "ja": "船とその板について長く話し、アナが持ってくるペンキのことも話した。",
    "zh": "他们谈了很久那条船和它的木板，还谈到安娜要带来的油漆。",
}


def bad(kind: str) -> Callable[[ModelRequest], Reply]:
    """Answers to merges that are refused, each for its reason."""

    def script(request: ModelRequest) -> Reply:
        shown = request.messages[-1].text
        match kind:
            case "cut off":
                return [Say('{"text": "They talked'), End(Finish.LENGTH)]
            case "empty":
                return json.dumps({"text": "  "})
            case "unreadable":
                return "I would rather not."
            case "not shorter":
                return json.dumps({"text": re.sub(r"\[[^\]]*\]", "", shown)})
            case _:
                return json.dumps({"text": 'Short. {{#if char == "Ana"}}A secret.{{/if}}'})

    return script


BAD = ["cut off", "empty", "unreadable", "not shorter", "adds a macro"]


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    clock.now = utc_now_at("2026-03-20T12:00")
    made = EntryHouse(sqlite, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


async def stored(house: RowsHouse, chat: str, kind: Kind, count: int, *, text: str = TEXT, dates: list[str] | None = None) -> list[int]:
    """Rows of `kind`, one message each."""
    made: list[int] = []
    for n in range(count):
        seq = (await house.says(chat, f"word{n}", at=utc_now_at("2026-03-02T10:00") + timedelta(days=n))).seq
        origin = entry_rows.AUTOMATIC if kind is Kind.ENTRY else "test"
        new = NewSummary(
            conversation_id=chat, kind=kind, text=f"{text}{n}", sources=[seq], local_date=dates[n] if dates else "", zone="UTC", rollover_hour=4,
            origin=origin,
        )  # fmt: skip
        made.append(await house.db.write(lambda c, new=new: summary_rows.add(c, new, house.clock())))
    return made


async def prepared(house: EntryHouse, what: str, text: str = TEXT) -> tuple[str, list[int], Kind, Job]:
    """A chat with rows that are to be merged; the kind of what they are to become, and the job that does it."""
    profile = {"4 to 1": "companion", "2 to 1": "companion", "week": "calendar", "month": "calendar", "year": "calendar", "half a year": "calendar"}
    house.profile = profile.get(what, "assistant")
    chat = await house.made()
    small = {"memory_budget": 64, "memory_overrun": 0}
    match what:
        case "4 to 1":
            return chat, await stored(house, chat, Kind.RECENT, 4, text=text), Kind.CONSOLIDATED, rolling_job(chat, "root")
        case "2 to 1":
            await house.set(context=small)
            return chat, await stored(house, chat, Kind.LONG_TERM, 2, text=text * 4), Kind.LONG_TERM, rolling_job(chat, "root")
        case "week":
            days = [f"2026-03-0{n}" for n in range(2, 9)]
            return chat, await stored(house, chat, Kind.DAY, 7, text=text, dates=days), Kind.WEEK, fold_job(chat, "root")
        case "month":
            weeks = ["2025-12-01", "2025-12-08", "2026-01-05", "2026-02-02", "2026-02-09", "2026-02-16"]
            await house.set(context=small, days={"remember_tokens": 0})
            return chat, await stored(house, chat, Kind.WEEK, 6, text=text, dates=weeks), Kind.MONTH, fold_job(chat, "root")
        case "year":
            months = ["2024-11-01", "2024-12-01", "2026-01-01", "2026-02-01", "2026-03-01"]
            await house.set(context=small, days={"remember_tokens": 0})
            return chat, await stored(house, chat, Kind.MONTH, 5, text=text, dates=months), Kind.YEAR, fold_job(chat, "root")
        case "half a year":
            await house.set(context=small, days={"remember_tokens": 0})
            return chat, await stored(house, chat, Kind.YEAR, 1, text=text * 8, dates=["2024-01-01"]), Kind.YEAR, fold_job(chat, "root")
        case _:
            await house.set(context=small)
            return chat, await stored(house, chat, Kind.ENTRY, 2, text=text), Kind.ENTRY, entries.job_of(entries.MERGE, chat, "root")


async def run(house: EntryHouse, job: Job) -> JobRow:
    number = await house.db.write(lambda c: enqueue(c, job, again=True))
    await house.run(job.kind)
    found = await house.db.read(lambda c: read_job(c, number))
    assert found is not None
    return found


async def reads(house: EntryHouse, chat: str) -> list[tuple[int, str]]:
    return [(row.id, row.text) for row in await house.rows(chat)]


@pytest.mark.rule("RS-111", "RS-191", "RS-195")
@pytest.mark.case("AT-14", "K23")
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("what", ["4 to 1", "2 to 1", "week", "month", "year", "half a year", "entries"])
async def test_a_merge_that_is_no_good_changes_nothing_and_is_asked_for_once(house: EntryHouse, what: str, kind: str) -> None:
    chat, _, _, job = await prepared(house, what)
    before = await reads(house, chat)
    house.script = bad(kind)
    done = await run(house, job)
    assert (done.state, house.calls) == ("done", 1), "the update ends, and is no fault of the job"
    assert await reads(house, chat) == before
    for _ in range(3):
        house.clock.advance(days=1)
        await run(house, job)
    assert house.calls == 1, "the same input is not sent again"
    assert await reads(house, chat) == before


@pytest.mark.rule("RS-111")
@pytest.mark.parametrize("language", list(LONG))
@pytest.mark.parametrize("what", ["4 to 1", "week", "entries"])
async def test_another_summary_or_another_helper_is_another_question(house: EntryHouse, what: str, language: str) -> None:
    chat, ids, into, job = await prepared(house, what, LONG[language])
    house.script = bad("not shorter")
    await run(house, job)
    await run(house, job)
    assert house.calls == 1
    await house.db.write(lambda c: summary_rows.edit(c, ids[0], house.clock(), text=LONG[language] + LONG[language]))
    await run(house, job)
    assert house.calls == 2, "a summary is another one"
    await house.models.close()
    house.model = ScriptedModel(lambda _request: json.dumps({"text": LONG[language]}), name="another-helper")
    house.models = Models(lambda _account: house.model, house.config)
    house.build()
    await run(house, job)
    assert house.calls == 1, "the helper is another one"
    [made] = [row for row in await house.rows(chat) if row.kind is into and row.id not in ids]
    assert (made.text, made.state) == (LONG[language].strip(), State.ACTIVE)


@pytest.mark.rule("RS-111", "RS-93")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(text='Short. {{#if char == "Ana" She sold it.'),
        Answer(text="Short. {{"),
        Answer(text='Short. {{#if char == "{Ana}"}}She sold it.{{/if}}'),
        Answer(text="Short.", title="{{char}}"),
        Answer(text="Short.", details=(Detail(kind="plan", text="{{user}} paints"),)),
    ],
    ids=["never closed", "begun", "with braces inside", "in the title", "in a detail"],
)
def test_a_macro_is_one_wherever_it_stands_and_however_it_ends(answer: Answer) -> None:
    merging = refused_merges.Merging(below=1_000, kept=lambda each: each)
    shown = 'As it was: {{#if char == "Ana"}}A part.{{/if}}'
    assert not merging.good(answer, shown)
    assert merging.good(Answer(text='Short. {{#if char == "Ana"}}A part.{{/if}}'), shown), "it stood there before"


@pytest.mark.rule("RS-111", "RS-45")
async def test_what_was_refused_is_passed_over_by_later_updates(house: EntryHouse) -> None:
    chat, ids, _, job = await prepared(house, "4 to 1")
    house.script = bad("not shorter")
    await run(house, job)
    await stored(house, chat, Kind.RECENT, 4, text=f"And so on. {TEXT}")
    house.script = lambda _request: json.dumps({"text": "Short."})
    await run(house, job)
    rows = await house.rows(chat)
    assert [(row.kind, row.id in ids) for row in rows] == [*[(Kind.RECENT, True)] * 4, (Kind.CONSOLIDATED, False)]
    assert house.calls == 2


@pytest.mark.rule("RS-111", "RS-166")
@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_fold_that_cannot_be_made_anew_shorter_gives_way_to_what_it_was_made_of(house: EntryHouse, forgotten: bool) -> None:
    chat, _, _, job = await prepared(house, "week")
    house.script = lambda request: json.dumps({"text": "A short week." if "notes on parts" in request.messages[0].text else "A new day."})
    await run(house, job)
    [week] = await house.rows(chat)
    below = {row.id for row in await house.db.read(lambda c: summary_rows.inputs_of(c, week.id))}
    seq = (await house.db.read(lambda c: conversations.window(c, chat, 0)))[2].seq
    await house.db.write(lambda c: summary_rows.mark_changed(c, chat, seq, seq, forgotten=forgotten))
    house.clock.advance(hours=1)
    folds: list[str] = []

    def script(request: ModelRequest) -> Reply:
        if "notes on parts" not in request.messages[0].text:
            return json.dumps({"text": "A new day."})
        folds.append(request.messages[-1].text)
        return bad("not shorter")(request)

    house.script = script
    await house.plan()
    await house.run("restate-summaries", "fold")
    rows = await house.rows(chat)
    assert {row.kind for row in rows} == {Kind.DAY}
    assert len(rows) == 7
    assert len({row.id for row in rows} & below) == 6, "six days are what they were"
    assert "A new day." in [row.text for row in rows]
    assert await house.stood_for(chat) == sorted(set(await house.stood_for(chat))), "nothing is told twice"
    assert len(folds) == 1
    await run(house, job)
    assert len(folds) == 1, "the job that folds knows what the one that makes anew was told"


@pytest.mark.rule("RS-111", "RS-45")
async def test_settled_details_do_not_count_as_length(house: EntryHouse) -> None:
    chat, _, _, job = await prepared(house, "week")
    settled = [{"text": f"{TEXT}{n}", "kind": "promise", "state": "resolved"} for n in range(30)]
    house.script = lambda _request: json.dumps({"text": "Short.", "details": settled})
    await run(house, job)
    [row] = await house.rows(chat)
    assert (row.kind, row.text, row.details) == (Kind.WEEK, "Short.", ())


@pytest.mark.rule("RS-111")
def test_what_is_stored_decides_what_is_shorter() -> None:
    merging = refused_merges.Merging(below=20, kept=lambda answer: answer)
    assert merging.good(Answer(text="x" * 60), "")
    assert not merging.good(Answer(text="x" * 60, details=(Detail(text="y" * 60),)), "")
    assert merging.good(Answer(text="{{user}} left"), "so {{user}} said")
    assert not merging.good(Answer(text="{{user}} left"), "so she said")


@pytest.mark.rule("RS-111")
async def test_only_so_many_refusals_are_kept(house: EntryHouse) -> None:
    chat = await house.made()
    for n in range(refused_merges.KEPT + 3):
        await house.db.write(lambda c, n=n: refused_merges.note(c, chat, f"{n:064}"[::-1]))
    found = await house.conversation(chat)
    assert len(found.settings[refused_merges.KEY]) == refused_merges.KEPT
    assert refused_merges.is_known(found, f"{refused_merges.KEPT + 2:064}"[::-1])
    assert not refused_merges.is_known(found, f"{0:064}"[::-1])
