"""Looking after summaries: levels, what is uncovered, edits, rebuilding with consent, days, settings of days, the jump of the window."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway.background import Background
from gateway.jobs.table import read_job
from gateway.models import Models
from gateway.recall.doctor import Facts, findings
from gateway.summaries.desk import Changed, HandEdited, SettingRefused, SummaryDesk, TailAsked
from gateway.summaries.summarist import Summarist
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import edge_jump, summary_rows
from memory.recall.confirming import CodeExpired
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, NewSummary, State
from memory.schema import jobs
from tests.conftest import FakeClock
from tests.gateway.test_recall_desk import ANN, BOB, Desk, lines

MODEL = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}


class Rows(Desk):
    """A desk of summaries over a real database; no job runs."""

    def __init__(self, db: Database, clock: FakeClock, **config: Any) -> None:
        wanted: dict[str, Any] = {"model": MODEL, "timezone": "UTC", **config}
        super().__init__(db, clock, **wanted)
        models = Models(lambda _account: ScriptedModel([]), self.config)
        background = Background(db=db, models=models, config=lambda: self.config, clock=clock)
        summarist = Summarist(models=models, background=background, config=lambda: self.config)
        self.woken = 0
        self.rows = SummaryDesk(db=db, clock=clock, config=lambda: self.config, summarist=summarist, wake=self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def seqs(self, chat: Conversation) -> list[int]:
        window = await self.db.read(lambda c: conversations.window(c, chat.id, 0))
        return [message.seq for message in window]

    async def row(self, chat: Conversation, kind: Kind, text: str, sources: list[int], **more: Any) -> int:
        new = NewSummary(conversation_id=chat.id, kind=kind, text=text, sources=sources, **more)
        return await self.db.write(lambda c: summary_rows.add(c, new, self.clock()))

    async def waiting(self) -> set[tuple[str, str]]:
        return await self.db.read(lambda c: {(row.kind, row.state) for row in c.execute(sa.select(jobs.c.kind, jobs.c.state))})


@pytest.fixture
async def house(database: Database, clock: FakeClock) -> Rows:
    house = Rows(database, clock)
    await house.begin()
    return house


@pytest.fixture
async def lite(sqlite: Database, clock: FakeClock) -> Rows:
    house = Rows(sqlite, clock)
    await house.begin()
    return house


@pytest.mark.rule("RS-47")
async def test_what_is_uncovered_is_counted_and_a_rebuild_begins_the_job(house: Rows) -> None:
    chat = await house.chat(profile="companion")
    await house.say(chat, *lines(*range(60)))
    seqs = await house.seqs(chat)
    await house.db.write(lambda c: conversations.move_edge(c, chat.id, seqs[39]))
    fresh = await house.fresh(chat)
    assert (await house.rows.whole(fresh, ANN)).uncovered == 40
    for begin in range(0, 30, 10):
        await house.row(chat, Kind.RECENT, f"part {begin}", seqs[begin : begin + 10])
    whole = await house.rows.whole(fresh, ANN)
    assert (whole.uncovered, [row.messages for row in whole.rows], whole.allowed, whole.has_model) == (10, [10, 10, 10], True, True)
    assert whole.window.first is not None and whole.window.first.seq == seqs[40]
    assert await house.rows.rebuild(fresh, ANN)
    assert house.woken == 1
    assert ("rolling", "waiting") in await house.waiting()
    await house.row(chat, Kind.RECENT, "part 30", seqs[30:40])
    assert (await house.rows.whole(fresh, ANN)).uncovered == 0


@pytest.mark.rule("RS-48")
async def test_an_edit_stays_and_is_made_anew_only_with_consent(house: Rows) -> None:
    chat = await house.chat(profile="companion")
    await house.say(chat, *lines(1, 2, 3))
    number = await house.row(chat, Kind.RECENT, "They met.", await house.seqs(chat))
    seen = await house.rows.row(chat.id, ANN, number)
    assert seen is not None
    based_on = seen.summary.updated_at.isoformat()
    house.clock.advance(seconds=1)
    edited = await house.rows.edit(chat.id, ANN, number, text="They met twice.", details=None, based_on=based_on)
    assert edited is not None
    assert (edited.summary.text, edited.summary.hand_edited) == ("They met twice.", True)
    with pytest.raises(Changed):
        await house.rows.edit(chat.id, ANN, number, text="They never met.", details=None, based_on=based_on)
    with pytest.raises(HandEdited):
        await house.rows.rebuild(chat, ANN, number)
    assert await house.waiting() == set()
    assert await house.rows.rebuild(chat, ANN, number, consent=True)
    released = await house.rows.row(chat.id, ANN, number)
    assert released is not None
    assert (released.summary.text, released.summary.stale, released.summary.hand_edited) == ("They met twice.", True, False)
    assert await house.waiting() == {("restate-summaries", "waiting")}


@pytest.mark.rule("RS-45", "RS-185")
async def test_rows_are_taken_apart_forgotten_with_a_code_and_hidden_from_whom_they_are_not_for(lite: Rows) -> None:
    chat = await lite.chat(group=True, profile="companion")
    await lite.say(chat, *lines(1, 2, 3, 4))
    seqs = await lite.seqs(chat)
    parts = [await lite.row(chat, Kind.RECENT, f"part {at}", seqs[at : at + 2]) for at in (0, 2)]
    whole = await lite.row(chat, Kind.CONSOLIDATED, "both", seqs, inputs=parts)
    secret = await lite.row(chat, Kind.RECENT, "for Bob", seqs[:1], audience=f"p:{BOB}")
    assert [row.summary.id for row in (await lite.rows.whole(chat, ANN)).rows] == [whole]
    assert [row.summary.text for row in await lite.rows.inputs(chat.id, ANN, whole)] == ["part 0", "part 2"]
    assert {row.summary.id for row in (await lite.rows.whole(chat, BOB)).rows} == {whole, secret}
    assert await lite.rows.row(chat.id, ANN, secret) is None
    assert await lite.rows.edit(chat.id, ANN, secret, text="x", details=None, based_on="") is None
    assert await lite.rows.unfold(chat.id, ANN, whole) == 2
    assert [row.summary.id for row in (await lite.rows.whole(chat, ANN)).rows] == parts
    code = await lite.rows.ask(chat.id, ANN, parts[0])
    with pytest.raises(CodeExpired):
        await lite.rows.forget(chat.id, ANN, parts[1], code)
    assert await lite.rows.forget(chat.id, ANN, parts[0], code)
    with pytest.raises(CodeExpired):
        await lite.rows.forget(chat.id, ANN, parts[0], code)
    assert [row.summary.id for row in (await lite.rows.whole(chat, ANN)).rows] == [parts[1]]


@pytest.mark.rule("RS-54")
async def test_weeks_come_before_days_and_details_are_edited(house: Rows) -> None:
    chat = await house.chat(profile="calendar")
    await house.say(chat, *lines(1, 2, 3))
    seqs = await house.seqs(chat)
    day = await house.row(chat, Kind.DAY, "a day", seqs[2:], local_date="2025-12-20", zone="UTC", rollover_hour=4)
    week = await house.row(chat, Kind.WEEK, "a week", seqs[:2], local_date="2025-12-08", zone="UTC", rollover_hour=4)
    assert [row.summary.id for row in (await house.rows.calendar(chat, ANN)).rows] == [week, day]
    details = [Detail(text="Send the map", kind="promise", due="2026-01-02"), Detail(text="Where to eat?", kind="question", state="resolved")]
    await house.rows.edit(chat.id, ANN, week, text=None, details=details, based_on="")
    found = await house.rows.row(chat.id, ANN, week)
    assert found is not None
    assert (found.summary.text, list(found.summary.details)) == ("a week", details)


@pytest.mark.rule("RS-58", "RS-167")
async def test_missing_days_have_reasons_and_backfill_takes_the_newest_in_spite_of_back_off(house: Rows) -> None:
    chat = await house.chat(profile="calendar")
    for _ in range(20):
        await house.say(chat, *lines(1))
        house.clock.advance(days=1)
    today = house.clock().date()
    shown = (await house.rows.calendar(chat, ANN)).missing
    assert [(each.day, each.reason) for each in shown] == [(today - timedelta(days=back), "waiting") for back in range(1, 21)]
    begun, ids = await house.rows.backfill(chat)
    assert [each.day for each in begun] == [today - timedelta(days=back) for back in range(1, 15)]
    assert len(ids) == 14
    first = ids[0]
    await house.db.write(lambda c: c.execute(
        sa.update(jobs).where(jobs.c.id == first).values(error_class="ModelBusy", not_before=datetime(2100, 1, 1, tzinfo=UTC), attempts=3)
    ))  # fmt: skip
    failed = [each for each in (await house.rows.calendar(chat, ANN)).missing if each.reason == "failed"]
    assert [each.error for each in failed] == ["ModelBusy"]
    again, _ = await house.rows.backfill(chat, most=20)
    assert len(again) == 20
    row = await house.db.read(lambda c: read_job(c, first))
    assert row is not None and row.job.not_before < datetime(2099, 1, 1, tzinfo=UTC)
    await house.say(chat, *lines(2))
    assert (await house.rows.calendar(chat, ANN)).missing[0].reason == "not_over_yet"
    await house.db.write(lambda c: conversations.change(c, chat.id, record="recall_only"))
    forbidden = await house.fresh(chat)
    assert {each.reason for each in (await house.rows.calendar(forbidden, ANN)).missing} == {"record_rule"}
    asked, none = await house.rows.backfill(forbidden)
    assert ({each.reason for each in asked}, none) == ({"record_rule"}, [])


@pytest.mark.rule("RS-58", "RS-60")
async def test_without_a_text_model_the_days_say_so(sqlite: Database, clock: FakeClock) -> None:
    house = Rows(sqlite, clock, model={"provider": "demo"})
    await house.begin()
    chat = await house.chat(profile="calendar")
    await house.say(chat, *lines(1))
    clock.advance(days=1)
    assert [each.reason for each in (await house.rows.calendar(chat, ANN)).missing] == ["no_model"]


@pytest.mark.rule("RS-52")
async def test_a_profile_that_keeps_no_days_misses_none(lite: Rows) -> None:
    chat = await lite.chat()
    await lite.say(chat, *lines(1))
    lite.clock.advance(days=2)
    assert (await lite.rows.calendar(chat, ANN)).missing == ()
    assert await lite.rows.backfill(chat) == ([], [])


@pytest.mark.rule("RS-56")
async def test_another_hour_warns_only_where_rows_were_made_with_the_old_one(lite: Rows) -> None:
    chat = await lite.chat(profile="calendar")
    assert await lite.rows.set(chat, {"days.rollover_hour": 2}) == []
    await lite.say(chat, *lines(1))
    await lite.row(chat, Kind.DAY, "a day", await lite.seqs(chat), local_date="2026-01-01", zone="UTC", rollover_hour=2)
    assert await lite.rows.set(chat, {"days.rollover_hour": 3}) == ["old_hour"]
    assert await lite.rows.set(chat, {"days.rollover_hour": 2}) == []
    assert (await lite.rows.calendar(await lite.fresh(chat), ANN)).settings["days.rollover_hour"] == 2


@pytest.mark.rule("RS-56", "RS-57")
@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("days.rollover_hour", 12, SettingRefused), ("days.rollover_hour", -1, SettingRefused), ("days.tail", -1, SettingRefused),
        ("days.tail", 5001, SettingRefused), ("days.tail", 501, TailAsked), ("days.zone", "UTC", SettingRefused), ("record", 1, SettingRefused),
        ("days.tail", True, SettingRefused),
    ],
)  # fmt: skip
async def test_a_value_outside_its_bounds_is_refused_and_a_long_tail_asked_about(lite: Rows, key: str, value: Any, fault: type[Exception]) -> None:
    chat = await lite.chat()
    with pytest.raises(fault):
        await lite.rows.set(chat, {key: value})
    assert (await lite.fresh(chat)).settings == {}
    if fault is TailAsked:
        await lite.rows.set(chat, {key: value}, sure=True)
        assert (await lite.fresh(chat)).settings == {"days.tail": 501}
    await lite.rows.set(chat, {"days.tail": 0})
    assert (await lite.fresh(chat)).settings == {"days.tail": 0}
    await lite.rows.set(chat, {"days.tail": None})
    assert (await lite.fresh(chat)).settings == {}


@pytest.mark.rule("RS-68")
async def test_a_jump_is_undone_once_and_not_after_the_edge_went_on(house: Rows) -> None:
    chat = await house.chat()
    await house.say(chat, *lines(*range(6)))
    seqs = await house.seqs(chat)
    await house.db.write(lambda c: conversations.change(c, chat.id, window_edge=seqs[0], settings={"days.tail": 3}))
    fresh = await house.fresh(chat)
    await house.db.write(lambda c: edge_jump.jump(c, fresh, seqs[3]))
    jumped = await house.fresh(chat)
    window = (await house.rows.whole(jumped, ANN)).window
    assert window.first is not None
    assert (jumped.window_edge, window.first.seq, window.jump) == (seqs[3], seqs[4], edge_jump.Jump(seqs[0], seqs[3]))
    assert await house.rows.undo_jump(chat.id) is not None
    back = await house.fresh(chat)
    assert (back.window_edge, back.settings["days.tail"], edge_jump.undone(back)) == (seqs[0], 3, seqs[3])
    assert await house.rows.undo_jump(chat.id) is None
    await house.db.write(lambda c: edge_jump.jump(c, back, seqs[2]))
    await house.db.write(lambda c: conversations.move_edge(c, chat.id, seqs[4]))
    assert await house.rows.undo_jump(chat.id) is None


@pytest.mark.rule("RS-80", "RS-160")
async def test_each_state_has_its_finding(lite: Rows) -> None:
    chat = await lite.chat(profile="companion")
    overview, whole = await lite.desk.overview(chat, ANN), await lite.rows.whole(chat, ANN)
    calendar = await lite.rows.calendar(chat, ANN)
    ok = replace(overview, vectors=replace(overview.vectors, vectors="ok"))
    await lite.say(chat, *lines(1))
    await lite.row(chat, Kind.RECENT, "waits", await lite.seqs(chat), state=State.WAITING)
    waits = await lite.rows.whole(chat, ANN)
    days = await _missing_day(lite)
    facts = Facts(overview=ok, summaries=whole, calendar=calendar)
    table = {
        (): facts,
        ("source",): replace(facts, overview=overview),
        ("waiting",): replace(facts, overview=replace(ok, totals=replace(ok.totals, chunks=3, vectorized=2))),
        ("unrelated",): replace(facts, reason="nothing_relevant"),
        ("rebuild",): replace(facts, overview=replace(ok, totals=replace(ok.totals, outdated=2))),
        ("model",): replace(facts, summaries=replace(whole, uncovered=4, has_model=False)),
        ("approval",): replace(facts, summaries=waits),
        ("stuck",): replace(facts, calendar=days),
        ("readers",): replace(facts, shared=True, readers_unknown=1),
        ("zone",): replace(facts, calendar=replace(calendar, wrong_zone="Asia/Tokio")),
    }
    assert {state: findings(each) for state, each in table.items()} == {state: list(state) for state in table}


async def _missing_day(house: Rows) -> Any:
    chat = await house.chat("9", profile="calendar")
    await house.say(chat, *lines(1))
    house.clock.advance(days=2)
    return await house.rows.calendar(chat, ANN)
