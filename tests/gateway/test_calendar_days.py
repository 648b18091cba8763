"""The days of a chat: rows, weeks, months, years, what is sent of them, and what is made anew (RS-51 to RS-62, RS-158 to RS-168)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.errors import ModelBusy, ModelMisconfigured
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply
from gateway import trimming, windows
from gateway.summaries import calendar_look, calendar_state
from gateway.summaries.calendar_state import day_job
from memory import conversations, message_changes, tokens
from memory.database import Database
from memory.recall import summary_rows, uncovered
from memory.recall.kinds import CALENDAR, Kind
from memory.recall.summary_rows import Detail, NewSummary, State
from memory.schema import job_parts, people
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import RowsHouse, lines, said, utc_now_at


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-02T12:00")  # a Monday
    made = RowsHouse(database, tmp_path, clock, profile="calendar")
    await made.person()
    yield made
    await made.close()


@pytest.fixture
async def small(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    """The same on SQLite alone, where the store is not the subject."""
    clock.now = utc_now_at("2026-03-02T12:00")
    made = RowsHouse(sqlite, tmp_path, clock, profile="calendar")
    await made.person()
    yield made
    await made.close()


async def a_day(house: RowsHouse, chat: str, day: str, *texts: str) -> list[conversations.Message]:
    """Messages of one date, from noon on."""
    noon = utc_now_at(f"{day}T12:00")
    return [await house.says(chat, text, at=noon + timedelta(minutes=n)) for n, text in enumerate(texts or (f"on {day}",))]


def of(day: date) -> str:
    return day.isoformat()


async def days(house: RowsHouse, chat: str, first: str, count: int) -> None:
    for n in range(count):
        await a_day(house, chat, of(date.fromisoformat(first) + timedelta(days=n)))


async def dates(house: RowsHouse, chat: str) -> list[tuple[Kind, str]]:
    return [(row.kind, row.local_date) for row in await house.rows(chat)]


# -- rows, weeks, months, years --------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-51")
async def test_fifteen_days_from_a_monday_give_two_weeks_and_a_day(house: RowsHouse) -> None:
    chat = await house.made()
    await days(house, chat, "2026-03-02", 15)
    await house.at("2026-03-17T10:00")
    found = await dates(house, chat)
    assert found == [(Kind.WEEK, "2026-03-02"), (Kind.WEEK, "2026-03-09"), (Kind.DAY, "2026-03-16")]
    assert Counter(await house.stood_for(chat)).most_common(1)[0][1] == 1
    assert len(await house.stood_for(chat)) == 15
    assert await house.count(job_parts) == 0


@pytest.mark.rule("RS-51")
async def test_daily_files_and_rows_are_no_input_of_each_other(small: RowsHouse) -> None:
    chat = await small.made()
    await a_day(small, chat, "2026-03-02", "plain words")
    await small.at("2026-03-03T10:00")
    [row] = await small.rows(chat)
    assert row.text == "plain words"
    assert small.day("2026-03-02") == "", "no file was written for it"
    assert all("plain words" in request.messages[-1].text for request in small.model.requests)


@pytest.mark.rule("RS-52", "RS-12")
async def test_only_the_record_rule_forbids_rows_and_other_profiles_make_none_unless_they_say_so(small: RowsHouse) -> None:
    chat = await small.made(record="recall_only")
    await a_day(small, chat, "2026-03-02")
    small.profile = "companion"
    other = await small.made("discord")
    await a_day(small, other, "2026-03-02")
    await small.set(profiles={"mine": {"turns": 20, "stored": "calendar"}})
    small.profile = "mine"
    third = await small.made("web")
    await a_day(small, third, "2026-03-02")
    await small.at("2026-03-03T10:00")
    assert [len(await small.rows(each)) for each in (chat, other, third)] == [0, 0, 1]
    assert await small.stands(third) == "", "stored is not sent"


@pytest.mark.rule("RS-163", "RS-162")
async def test_a_long_day_is_cut_into_pieces_and_a_fact_from_one_of_the_last_reaches_the_details(small: RowsHouse) -> None:
    await small.set(background={"daily_token_budget": 0})
    chat = await small.made()
    noon = utc_now_at("2026-03-02T12:00")
    for n in range(40):  # each fills a piece
        fact = "the key lies under the pot" if n == 38 else f"part {n}"
        await small.says(chat, f"{fact} {'words and ' * 2_900}", at=noon + timedelta(minutes=n))

    def script(request: ModelRequest) -> str:
        text = request.messages[-1].text
        facts = re.findall(r"(the key lies under the pot|part \d+)\b", text)
        talk = bool(lines(request))
        return json.dumps({"details": [{"text": each} for each in facts] if talk else [], "text": "joined"})

    small.script = script
    await small.at("2026-03-03T10:00")
    asked = [tokens.count(request.messages[-1].text) for request in small.model.requests]
    assert max(asked) < 8_100
    assert len(asked) == 40 + 5 + 1
    [row] = await small.rows(chat)
    assert "the key lies under the pot" in [detail.text for detail in row.details]
    assert len(row.details) == 40


@pytest.mark.rule("RS-163")
async def test_pieces_that_were_paid_for_are_not_paid_again(small: RowsHouse) -> None:
    await small.set(background={"daily_token_budget": 0})
    chat = await small.made()
    noon = utc_now_at("2026-03-02T12:00")
    for n in range(3):
        await small.says(chat, f"part {n} {'words and ' * 2_900}", at=noon + timedelta(minutes=n))
    down = iter([False, False, True])
    small.script = lambda request: [Fail(ModelBusy("down"))] if next(down, False) else said(request)
    await small.at("2026-03-03T10:00")
    assert await small.rows(chat) == []
    await small.at("2026-03-03T12:00")
    assert len(await small.rows(chat)) == 1
    assert small.calls == 3 + 1 + 1, "two pieces, one that failed, that one again, and the join"


@pytest.mark.rule("RS-164")
async def test_a_week_folds_late_without_a_failed_day_names_it_and_is_folded_again_when_it_is_repaired(house: RowsHouse) -> None:
    chat = await house.made()
    await days(house, chat, "2026-03-02", 7)
    sick = [True]
    house.script = lambda request: [Fail(ModelMisconfigured("no"))] if sick and "on 2026-03-04" in request.messages[-1].text else said(request)
    await house.at("2026-03-09T10:00")
    assert (Kind.WEEK, "2026-03-02") not in await dates(house, chat)
    await house.at("2026-03-16T10:00")
    [week] = await house.rows(chat)
    assert (week.kind, week.failed_days) == (Kind.WEEK, ("2026-03-04",))
    assert "without 2026-03-04" in await house.stands(chat)
    assert "[2026-03-04] on 2026-03-04" in await house.live(chat), "the day is sent raw"
    sick.clear()
    await house.at("2026-03-19T10:00")
    [week] = await house.rows(chat)
    assert (week.kind, week.failed_days) == (Kind.WEEK, ())
    assert "on 2026-03-04" in week.text
    assert "on 2026-03-03" in week.text
    assert len(await house.stood_for(chat)) == 7


@pytest.mark.rule("RS-164", "RS-66")
async def test_five_years_stay_under_their_share_and_keep_the_newest_weeks_and_months(small: RowsHouse) -> None:
    """Weeks as they come; each year is written as long as it was told."""
    wide = {**small.config.model.model_dump(), "context_window": 64_000, "api_key": ""}
    await small.set(context={"memory_budget": 3_000}, days={"remember_tokens": 0}, model=wide)

    def script(request: ModelRequest) -> str:
        asked = re.search(r"at most (\d+) words", request.messages[0].text)
        return json.dumps({"text": " ".join(["thing"] * (min(60, int(asked[1])) if asked else 20))})

    small.script = script
    chat = await small.made()
    [message] = await a_day(small, chat, "2026-03-02")
    monday = date(2026, 3, 2)
    share = windows.standing_room(small.config, await small.conversation(chat))
    for week in range(260):
        new = NewSummary(
            conversation_id=chat, kind=Kind.WEEK, text=" ".join(["thing"] * 40), sources=[message.seq],
            local_date=of(monday + timedelta(weeks=week)),
        )  # fmt: skip
        await small.db.write(lambda c, new=new: summary_rows.add(c, new, small.clock()))
        if week % 10 == 9:
            day = monday + timedelta(weeks=week + 1)
            await a_day(small, chat, of(day))
            await small.at(f"{of(day + timedelta(days=1))}T10:00")
            assert tokens.count(await small.stands(chat)) <= share + 40, week
    kinds = Counter(row.kind for row in await small.rows(chat))
    assert kinds[Kind.WEEK] >= 4
    assert kinds[Kind.YEAR] >= 3


@pytest.mark.rule("RS-164")
async def test_weeks_become_months_above_the_share_alone(small: RowsHouse) -> None:
    chat = await small.made()
    mondays = [of(date(2025, 3, 3) + timedelta(weeks=n)) for n in range(20)]
    weeks = [NewSummary(conversation_id=chat, kind=Kind.WEEK, text="a week", sources=[], local_date=monday) for monday in mondays]
    await small.db.write(lambda c: [summary_rows.add(c, week, small.clock()) for week in weeks])
    found = await small.db.read(lambda c: calendar_state.read(c, small.config, chat))
    assert found is not None
    assert not found.above
    assert found.fold(small.clock()) is None
    fold = replace(found, above=True).fold(small.clock())
    assert fold is not None
    assert fold.kind is Kind.MONTH


# -- when ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-161", "RS-56")
async def test_a_day_waits_for_its_rollover_and_a_quarter_of_an_hour_of_silence(house: RowsHouse) -> None:
    chat = await house.made()
    await house.says(chat, "late at night", at=utc_now_at("2026-03-03T03:59"))
    assert await house.at("2026-03-03T04:10") == []
    assert await house.at("2026-03-03T04:16") == [f"day-row {chat}:2026-03-02"]
    [row] = await house.rows(chat)
    assert (row.local_date, row.zone, row.rollover_hour) == ("2026-03-02", "UTC", 4)


@pytest.mark.rule("RS-161")
async def test_a_chat_that_talks_through_the_rollover_is_summarised_three_hours_later_and_sent_raw_until_then(small: RowsHouse) -> None:
    chat = await small.made()
    for hour in range(2, 8):
        for minute in range(0, 60, 10):
            await small.says(chat, f"at {hour}:{minute:02}", at=utc_now_at(f"2026-03-03T{hour:02}:{minute:02}"))
    small.clock.now = utc_now_at("2026-03-03T06:55")
    assert await small.plan() == 0
    assert len(await small.live(chat)) == 36
    await small.at("2026-03-03T07:00")
    assert await dates(small, chat) == [(Kind.DAY, "2026-03-02")]
    live = await small.live(chat)
    assert live[:2] == ["[2026-03-02] at 2:20", "[2026-03-02] at 2:30"]
    assert live[10] == "at 4:00"


@pytest.mark.rule("RS-161")
async def test_a_server_that_was_down_for_days_makes_up_for_all_of_them_also_in_chats_nobody_opened(small: RowsHouse) -> None:
    chats = [await small.made(channel) for channel in ("telegram", "discord")]
    for chat in chats:
        await days(small, chat, "2026-03-03", 3)
    small.build()
    await small.at("2026-03-08T12:00")
    assert [len(await small.rows(chat)) for chat in chats] == [3, 3]


@pytest.mark.rule("RS-158", "RS-62")
async def test_the_zone_is_the_chats_then_the_configured_one_then_that_of_its_memory(small: RowsHouse) -> None:
    chat = await small.made()
    await small.says(chat, "hello", at=utc_now_at("2026-03-02T20:00"))
    found = await small.conversation(chat)

    async def zone(**values: Any) -> str:
        await small.set(**values)
        return await small.db.read(lambda c: windows.clock_of(c, small.config, found, "root").zone.key)

    assert await zone() == "UTC"
    await small.db.write(lambda c: c.execute(sa.update(people).where(people.c.id == OWNER).values(timezone="Europe/Paris")))
    assert await zone() == "Europe/Paris"
    assert await zone(days={"zone": "Asia/Tokyo"}) == "Asia/Tokyo"
    await small.change(chat, timezone="America/New_York")
    found = await small.conversation(chat)
    assert await zone() == "America/New_York"
    await small.change(chat, timezone="Nowhere/Land")
    found = await small.conversation(chat)
    assert await zone() == "Asia/Tokyo", "a wrong name is the next one's (RS-160)"


@pytest.mark.rule("RS-159")
async def test_another_zone_and_hour_move_nothing_that_a_row_stands_for(small: RowsHouse) -> None:
    chat = await small.made()
    await days(small, chat, "2026-03-02", 30)
    await small.at("2026-04-02T12:00")
    before = await small.stood_for(chat)
    await small.change(chat, timezone="Pacific/Auckland", settings={"days.rollover_hour": 0})
    await small.at("2026-04-02T13:00")
    assert await small.stood_for(chat) == before
    assert len(set(before)) == len(before) == 30
    await small.says(chat, "late word", at=utc_now_at("2026-04-01T00:30"))
    await small.at("2026-04-03T13:00")
    day = [row for row in await small.rows(chat) if row.local_date == "2026-04-01" and row.kind is Kind.DAY]
    assert sum(row.text == "late word" for row in await small.rows(chat)) == 1 or any(row.part == 2 for row in day)
    assert len(await small.stood_for(chat)) == 31


# -- what is sent ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-53", "RS-57")
async def test_the_prompt_on_a_wednesday(house: RowsHouse) -> None:
    """A folded week, unfolded days, a day that failed as raw text, the tail with its dates, today."""
    await house.set(days={"tail": 2})
    chat = await house.made()
    await days(house, chat, "2026-03-02", 8)
    await a_day(house, chat, "2026-03-10", "tuesday one", "tuesday two", "tuesday three")
    sick = "on 2026-03-09"
    house.script = lambda request: [Fail(ModelMisconfigured("no"))] if sick in lines(request) else said(request)
    await house.at("2026-03-11T08:00")
    await house.says(chat, "good morning")
    assert (await house.stands(chat)).splitlines()[1:3] == [
        "2026-03-02 to 2026-03-08: " + ";".join(f"on 2026-03-0{n}" for n in range(2, 9)),
        "2026-03-10 Tuesday: tuesday one / tuesday two / tuesday three",
    ]
    assert await house.live(chat) == ["[2026-03-09] on 2026-03-09", "[2026-03-10] tuesday two", "[2026-03-10] tuesday three", "good morning"]


@pytest.mark.rule("RS-57")
@pytest.mark.parametrize("tail", [0, 10, 500])
async def test_the_tail_of_a_new_day(small: RowsHouse, tail: int) -> None:
    await small.set(days={"tail": tail})
    chat = await small.made()
    await a_day(small, chat, "2026-03-02", *(f"m{n}" for n in range(30)))
    await small.at("2026-03-03T08:00")
    await small.says(chat, "first of the day")
    earlier = [f"[2026-03-02] m{n}" for n in range(30 - min(tail, 30), 30)]
    assert await small.live(chat) == [*earlier, "first of the day"]


@pytest.mark.rule("RS-165")
async def test_open_promises_questions_and_facts_are_remembered_until_they_are_settled(small: RowsHouse) -> None:
    chat = await small.made()
    await days(small, chat, "2026-03-02", 2)
    await small.at("2026-03-04T10:00")
    first, second = await small.rows(chat)
    many = [Detail(text=f"fact number {n}", kind="fact") for n in range(300)]
    told = [Detail(text="call Ben", kind="promise", due="2026-03-20"), Detail(text="pay rent", kind="promise", due="2026-03-09"), *many]
    await small.db.write(lambda c: summary_rows.edit(c, first.id, small.clock(), details=told))
    settled = [Detail(text="Pay rent", kind="promise", state="resolved")]
    await small.db.write(lambda c: summary_rows.edit(c, second.id, small.clock(), details=settled))
    stands = await small.stands(chat)
    after = stands[stands.index("[to remember]") :].splitlines()[1:]
    assert after[0] == "- promise by 2026-03-20: call Ben"
    assert "rent" not in stands
    assert tokens.count("\n".join(after)) <= 1_100
    assert len(after) > 20


# -- failures, changes, by hand --------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-59", "RS-193")
async def test_a_failed_day_is_tried_again_by_itself_and_another_model_rewrites_nothing(small: RowsHouse) -> None:
    chat = await small.made()
    await a_day(small, chat, "2026-03-02")
    down = [True]
    small.script = lambda request: [Fail(ModelBusy("down"))] if down else said(request)
    await small.at("2026-03-03T10:00")
    assert await small.rows(chat) == []
    down.clear()
    await small.at("2026-03-03T11:00")
    before = await small.rows(chat)
    assert len(before) == 1
    small.script = lambda _request: '{"text": "by another model"}'
    await small.at("2026-03-03T15:00")
    assert await small.rows(chat) == before


@pytest.mark.rule("RS-168", "RS-55")
async def test_broken_fenced_and_long_answers(small: RowsHouse) -> None:
    chat = await small.made()
    await a_day(small, chat, "2026-03-02")
    long = "very long " * 400
    answers: list[Reply] = ["Sorry, no.", f'Here it is:\n```json\n{{"details": ["a fact",], "text": "{long.strip()}"}}\n```']
    small.script = lambda _request: answers.pop(0)
    await small.at("2026-03-03T10:00")
    [row] = await small.rows(chat)
    assert row.text == long.strip()
    assert [detail.text for detail in row.details] == ["a fact"]
    assert small.calls == 2


@pytest.mark.rule("RS-61")
async def test_two_people_with_one_name_are_told_apart(small: RowsHouse) -> None:
    chat = await small.made()
    await small.person("p-otherbbbbb", scope="people/p-otherbbbbb")
    await a_day(small, chat, "2026-03-02", "mine")
    await small.says(chat, "theirs", by="p-otherbbbbb", at=utc_now_at("2026-03-02T12:30"))
    await small.at("2026-03-03T10:00")
    shown = small.model.requests[0].messages[-1].text
    assert f"Ana ({OWNER}): mine" in shown
    assert "Ana (p-otherbbbbb): theirs" in shown


async def folded_week(house: RowsHouse) -> tuple[str, list[conversations.Message]]:
    chat = await house.made()
    said_: list[conversations.Message] = []
    for n in range(2, 9):
        said_ += await a_day(house, chat, f"2026-03-0{n}", f"morning {n}", f"evening {n}")
    await house.at("2026-03-10T10:00")
    assert await dates(house, chat) == [(Kind.WEEK, "2026-03-02")]
    return chat, said_


@pytest.mark.rule("RS-166")
async def test_an_edit_in_a_folded_week_is_sent_on_and_rebuilt_from_the_day_up_after_ten_minutes(house: RowsHouse) -> None:
    chat, talk = await folded_week(house)
    await house.db.write(lambda c: message_changes.correct(c, talk[4], "corrected words", house.clock()))
    calls = house.calls
    assert await house.at("2026-03-10T10:05") == []
    assert "morning 4" in await house.stands(chat), "it is still sent"
    await house.at("2026-03-10T10:11")
    [week] = await house.rows(chat)
    assert "corrected words" in week.text
    assert "morning 4" not in week.text
    assert not week.stale
    assert house.calls == calls + 2, "the day and the week, no other day"
    days_ = await house.db.read(lambda c: summary_rows.inputs_of(c, week.id))
    assert [row.local_date for row in days_] == [f"2026-03-0{n}" for n in range(2, 9)]


@pytest.mark.rule("RS-166", "RS-189")
async def test_a_deleted_message_withholds_the_week_sends_the_rest_raw_and_is_rebuilt_at_once(house: RowsHouse) -> None:
    chat, talk = await folded_week(house)
    await house.db.write(lambda c: message_changes.forget(c, talk[4].id))
    assert await house.stands(chat) == ""
    live = await house.live(chat)
    assert "[2026-03-04] evening 4" in live
    assert not [each for each in live if "morning 4" in each]
    await house.at("2026-03-10T10:01")
    [week] = await house.rows(chat)
    assert "evening 4" in week.text
    assert not [row for row in await house.rows(chat, states=tuple(State)) if "morning 4" in row.text or "morning 4" in str(row.details)]
    assert await house.count(job_parts) == 0
    assert len(await house.stood_for(chat)) == 13


@pytest.mark.rule("RS-166")
async def test_a_late_message_joins_its_day_or_stands_beside_a_folded_one_which_is_folded_again(small: RowsHouse) -> None:
    chat, _ = await folded_week(small)
    await a_day(small, chat, "2026-03-09", "monday")
    await small.at("2026-03-10T12:00")
    await small.says(chat, "late for monday", at=utc_now_at("2026-03-09T18:00"))
    await small.says(chat, "late for wednesday", at=utc_now_at("2026-03-04T18:00"))
    await small.at("2026-03-10T13:00")
    rows = await small.rows(chat)
    assert [(row.kind, row.local_date, row.part) for row in rows] == [(Kind.WEEK, "2026-03-02", 0), (Kind.DAY, "2026-03-09", 0)]
    assert "late for wednesday" in rows[0].text
    assert rows[1].text == "monday / late for monday"
    assert len(set(await small.stood_for(chat))) == len(await small.stood_for(chat)) == 17


@pytest.mark.rule("RS-166")
async def test_what_a_person_wrote_is_never_rewritten_but_listed(small: RowsHouse) -> None:
    chat, talk = await folded_week(small)
    [week] = await small.rows(chat)
    await small.db.write(lambda c: summary_rows.edit(c, week.id, small.clock(), text="my week"))
    await small.db.write(lambda c: message_changes.correct(c, talk[4], "corrected", small.clock()))
    await small.at("2026-03-10T12:00")
    [kept] = await small.rows(chat)
    assert (kept.id, kept.text, kept.stale, kept.hand_edited) == (week.id, "my week", True, True)
    await small.says(chat, "late", at=utc_now_at("2026-03-04T18:00"))
    await small.at("2026-03-10T13:00")
    assert "my week" in [row.text for row in await small.rows(chat)], "what came later stands beside it"
    await small.db.write(lambda c: message_changes.forget(c, talk[4].id))
    assert "my week" not in await small.stands(chat)


@pytest.mark.rule("RS-195")
async def test_an_edit_of_one_week_while_another_is_written_loses_neither(small: RowsHouse) -> None:
    chat, _ = await folded_week(small)
    [first] = await small.rows(chat)
    await days(small, chat, "2026-03-09", 7)

    def script(request: ModelRequest) -> str:
        return said(request)

    small.script = script
    paid = small.summarist.of_summaries

    async def meanwhile(*given: Any, **named: Any) -> Any:
        answer = await paid(*given, **named)
        await small.db.write(lambda c: summary_rows.edit(c, first.id, small.clock(), text="edited meanwhile"))
        return answer

    small.summarist.of_summaries = meanwhile  # pyright: ignore[reportAttributeAccessIssue]
    await small.at("2026-03-17T10:00")
    rows = await small.rows(chat)
    assert [(row.local_date, row.text.startswith("edited")) for row in rows] == [("2026-03-02", True), ("2026-03-09", False)]


@pytest.mark.rule("RS-58", "RS-167")
async def test_backfill_takes_the_fourteen_newest_missing_days_then_the_rest(small: RowsHouse) -> None:
    chat = await small.made()
    await days(small, chat, "2026-03-02", 20)
    small.clock.now = utc_now_at("2026-03-22T12:00")
    assert len(await missing(small, chat)) == 20

    async def fill() -> list[str]:
        now = small.clock()
        found = await small.db.write(lambda c: calendar_look.backfill(c, small.config, small.summarist, chat, now))
        await small.run("day-row")
        return [each.day.isoformat() for each in found]

    first = await fill()
    assert (first[0], first[-1], len(first)) == ("2026-03-21", "2026-03-08", 14)
    assert len(await missing(small, chat)) == 6
    assert len(await fill()) == 6
    assert await missing(small, chat) == []


async def missing(house: RowsHouse, chat: str) -> list[tuple[str, str]]:
    found = await house.db.read(lambda c: calendar_look.missing(c, house.config, house.summarist, chat, house.clock()))
    return [(each.day.isoformat(), each.reason) for each in found]


@pytest.mark.rule("RS-167")
async def test_the_reasons_of_missing_days(small: RowsHouse) -> None:
    chat = await small.made()
    await a_day(small, chat, "2026-03-02", "broken")
    small.script = lambda _request: "no object"
    await small.at("2026-03-03T10:00")
    await a_day(small, chat, "2026-03-03", "today")
    small.clock.now = utc_now_at("2026-03-03T13:00")
    assert await missing(small, chat) == [("2026-03-03", "not over yet"), ("2026-03-02", "failed: InvalidOutput")]
    small.script = said
    now = small.clock()
    found = await small.db.write(lambda c: calendar_look.backfill(c, small.config, small.summarist, chat, now))
    assert [each.reason for each in found] == ["waiting"]
    await small.run("day-row")
    assert await missing(small, chat) == [("2026-03-03", "not over yet")], "it was tried in spite of its back-off of a day"
    await small.change(chat, record="none")
    assert await missing(small, chat) == [("2026-03-03", "record rule")]


@pytest.mark.rule("RS-167", "RS-60")
async def test_a_run_says_why_it_made_nothing(small: RowsHouse) -> None:
    chat = await small.made()
    await a_day(small, chat, "2026-03-02")
    small.clock.now = utc_now_at("2026-03-02T20:00")

    async def outcome() -> Any:
        found = await small.db.read(lambda c: calendar_state.read(c, small.config, chat))
        assert found is not None
        job = day_job(found, found.waiting[0])
        await small.db.write(lambda c: trimming.enqueue(c, job, again=True))
        await small.run("day-row")
        return (await small.job(job.kind, job.key)).result

    assert await outcome() == {"skipped": "not over yet"}
    await small.change(chat, record="recall_only")
    assert await outcome() == {"skipped": "record rule"}
    await small.change(chat, record="full")
    small.summarist.can = lambda chat: False
    assert await outcome() == {"skipped": "no model"}
    assert small.calls == 0
    assert await small.live(chat) == ["on 2026-03-02"], "the day is sent raw"


@pytest.mark.rule("RS-194")
async def test_a_day_whose_message_is_edited_while_it_is_summarised_is_summarised_again(house: RowsHouse) -> None:
    chat = await house.made()
    [message] = await a_day(house, chat, "2026-03-02", "before")
    paid = house.summarist.of_talk
    edited: list[bool] = []

    async def meanwhile(*given: Any, **named: Any) -> Any:
        answer = await paid(*given, **named)
        if not edited:
            edited.append(True)
            await house.db.write(lambda c: message_changes.correct(c, message, "after", house.clock()))
        return answer

    house.summarist.of_talk = meanwhile  # pyright: ignore[reportAttributeAccessIssue]
    await house.at("2026-03-03T10:00")
    [row] = await house.rows(chat)
    assert (row.text, row.stale) == ("after", False)


@pytest.mark.rule("RS-53")
async def test_no_more_of_a_long_log_is_read_than_is_sent(small: RowsHouse) -> None:
    chat = await small.made()
    await days(small, chat, "2026-03-02", 30)
    await small.at("2026-04-02T12:00")
    assert await small.db.read(lambda c: uncovered.unsaid(c, chat, CALENDAR)) == []
    newest = [of(date(2026, 3, 22) + timedelta(days=n)) for n in range(10)]
    assert await small.live(chat) == [f"[{day}] on {day}" for day in newest]
