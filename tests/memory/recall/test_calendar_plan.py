"""Days, weeks, months and years of a chat, as pure plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.calendar_plan import (
    Clock,
    Stamp,
    backfill,
    is_over,
    next_look,
    raw,
    remember,
    to_compress,
    to_halve,
    uncovered_days,
    weeks_to_fold,
)
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, State, Summary

TOKYO = Clock(zone=ZoneInfo("Asia/Tokyo"))
NUMBERS = count(1)


def at(local: str, zone: str = "Asia/Tokyo") -> datetime:
    return datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def row(kind: Kind, day: str, **more: Any) -> Summary:
    number = next(NUMBERS)
    values: dict[str, Any] = {
        "id": number, "conversation_id": "c", "kind": kind, "state": State.ACTIVE, "text": f"{kind} {day}", "details": (), "title": "",
        "audience": "", "first_seq": number, "last_seq": number, "local_date": day, "part": 0, "zone": "Asia/Tokyo",
        "rollover_hour": 4, "failed_days": (), "hand_edited": False, "stale": False, "fingerprint": "", "model": "", "origin": "calendar",
        "tokens": 10, "created_at": at("2026-01-01"), "updated_at": at("2026-01-01"),
    } | more  # fmt: skip
    return Summary(**values)


@pytest.mark.rule("RS-56", "RS-159", "RS-186")
def test_talk_before_the_rollover_is_of_the_day_before_and_audiences_stand_apart() -> None:
    talk = [
        Stamp(seq=1, at=at("2026-03-09T03:59")),
        Stamp(seq=2, at=at("2026-03-09T04:00")),
        Stamp(seq=3, at=at("2026-03-09T05:00"), audience="p:1"),
    ]
    found = uncovered_days(talk, TOKYO)
    assert [(day.day.isoformat(), day.audience, day.seqs) for day in found] == [
        ("2026-03-08", "", (1,)),
        ("2026-03-09", "", (2,)),
        ("2026-03-09", "p:1", (3,)),
    ]


@pytest.mark.rule("RS-161")
@pytest.mark.parametrize(
    ("now", "last", "over"),
    [
        ("2026-03-09T04:10", "2026-03-09T03:30", False),  # the day has ended, the silence since is too short
        ("2026-03-09T04:15", "2026-03-09T03:30", True),
        ("2026-03-09T05:00", "2026-03-09T04:59", False),  # they still talk
        ("2026-03-09T07:00", "2026-03-09T06:59", True),  # for too long
        ("2026-03-09T03:00", "2026-03-08T10:00", False),
    ],
)
def test_a_day_is_over_after_a_silence_or_three_hours(now: str, last: str, over: bool) -> None:
    day = date(2026, 3, 8)
    assert is_over(day, TOKYO, at(now), at(last)) is over
    if not over:
        assert is_over(day, TOKYO, next_look(day, TOKYO, at(now), at(last)), at(last))


@pytest.mark.rule("RS-51", "RS-164")
def test_fifteen_days_from_a_monday_are_two_weeks_and_a_day() -> None:
    days = [row(Kind.DAY, (date(2026, 3, 2) + timedelta(days=n)).isoformat()) for n in range(15)]
    folds = weeks_to_fold(days, [], TOKYO, at("2026-03-17T05:00"))
    assert [(fold.day.isoformat(), len(fold.inputs), fold.failed) for fold in folds] == [("2026-03-02", 7, ()), ("2026-03-09", 7, ())]
    assert weeks_to_fold(days[:7], [], TOKYO, at("2026-03-09T03:59")) == []  # Monday before the rollover belongs to last week


@pytest.mark.rule("RS-164")
def test_a_week_waits_seven_days_for_a_failed_day_names_it_and_is_folded_again() -> None:
    days = [row(Kind.DAY, (date(2026, 3, 2) + timedelta(days=n)).isoformat()) for n in range(6)]
    waiting = uncovered_days([Stamp(seq=99, at=at("2026-03-08T12:00"))], TOKYO)
    assert weeks_to_fold(days, waiting, TOKYO, at("2026-03-15T12:00")) == []
    (fold,) = weeks_to_fold(days, waiting, TOKYO, at("2026-03-16T04:00"))
    assert fold.failed == ("2026-03-08",)
    week, repaired = row(Kind.WEEK, "2026-03-02", failed_days=("2026-03-08",)), row(Kind.DAY, "2026-03-08")
    (again,) = weeks_to_fold([week, repaired], [], TOKYO, at("2026-03-20T12:00"))
    assert again.inputs == (week, repaired)
    assert again.failed == ()


@pytest.mark.rule("RS-164")
def test_five_years_of_weeks_become_months_then_years_and_the_newest_stay() -> None:
    rows = [row(Kind.WEEK, (date(2021, 1, 4) + timedelta(weeks=n)).isoformat()) for n in range(260)]
    folded = 0
    while (fold := to_compress(rows)) is not None:
        rows = [each for each in rows if each not in fold.inputs] + [row(fold.kind, fold.day.isoformat())]
        folded += 1
    kinds = [each.kind for each in rows]
    assert kinds.count(Kind.WEEK) >= 4
    assert kinds.count(Kind.MONTH) >= 3
    assert kinds.count(Kind.YEAR) == 5, "of the last year what its newest months leave"
    assert len(rows) < 25
    assert len({(each.kind, each.local_date) for each in rows}) == len(rows)
    halved = to_halve(rows)
    assert halved is not None
    assert halved.local_date == "2021-01-01"
    assert to_halve([row(Kind.YEAR, "2021-01-01", hand_edited=True)]) is None
    assert to_halve([row(Kind.YEAR, "2021-01-01"), row(Kind.MONTH, "2021-11-01")]) is None, "a year that goes on"


@pytest.mark.rule("RS-164")
@pytest.mark.parametrize(
    ("months", "folded"),
    [
        (["2026-10-01", "2026-11-01", "2026-12-01"], None),
        (["2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01"], None),  # two months are not worth writing the year anew
        (["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01"], ("2026-01-01", 3)),
        (["2025-12-01", "2026-01-01", "2026-02-01", "2026-03-01"], ("2025-01-01", 1)),  # a year that is over is folded whole
        ([f"2026-{n:02}-01" for n in range(1, 13)], ("2026-01-01", 9)),
    ],
)
def test_of_a_year_that_is_not_over_all_but_the_newest_months_fold(months: list[str], folded: tuple[str, int] | None) -> None:
    fold = to_compress([row(Kind.MONTH, month) for month in months])
    assert (fold and (fold.day.isoformat(), len(fold.inputs))) == folded
    if fold is not None:
        assert fold.kind is Kind.YEAR
        assert not {each.local_date for each in fold.inputs} & {*months[-3:]}


@pytest.mark.rule("RS-164")
def test_later_months_join_the_row_of_their_year() -> None:
    year, months = row(Kind.YEAR, "2026-01-01"), [row(Kind.MONTH, f"2026-{n:02}-01") for n in range(4, 10)]
    fold = to_compress([year, *months])
    assert fold is not None
    assert fold.inputs == (year, *months[:3])


@pytest.mark.rule("RS-53", "RS-57")
@pytest.mark.parametrize(("tail", "kept"), [(0, [5, 6]), (2, [3, 4, 5, 6]), (10, [1, 2, 3, 4, 5, 6])])
def test_today_days_without_a_row_and_a_tail_are_sent(tail: int, kept: list[int]) -> None:
    talk = [Stamp(seq=n, at=at("2026-03-08T12:00") + timedelta(minutes=n)) for n in range(1, 5)]
    talk += [Stamp(seq=5, at=at("2026-03-09T12:00")), Stamp(seq=6, at=at("2026-03-10T12:00"))]
    assert raw(talk, {1, 2, 3, 4}, TOKYO, at("2026-03-10T13:00"), tail=tail) == kept


@pytest.mark.rule("RS-58", "RS-167")
def test_a_backfill_takes_the_newest_fourteen_then_the_rest() -> None:
    talk = [Stamp(seq=n, at=at("2026-03-01T12:00") + timedelta(days=n)) for n in range(20)]
    waiting = uncovered_days(talk, TOKYO)
    now = at("2026-04-01T12:00")
    first = backfill(waiting, TOKYO, now, most=14)
    assert [day.day for day in first] == [date(2026, 3, 20) - timedelta(days=n) for n in range(14)]
    rest = [day for day in waiting if day not in first]
    assert len(backfill(rest, TOKYO, now, most=14)) == 6
    assert backfill(waiting, TOKYO, at("2026-03-01T12:00"), most=14) == []  # today is not over


@pytest.mark.rule("RS-165")
def test_promises_come_before_questions_before_facts_and_resolved_ones_are_gone() -> None:
    week = (Detail(text="シロに薬", kind="promise", due="2026-03-20"), Detail(text="likes tea"), Detail(text="回答待ち", kind="question"))
    sunday = (Detail(text="搬家", kind="plan"), Detail(text="喜欢爬山"))
    monday = (Detail(text="call the vet", kind="promise", due="2026-03-12"), Detail(text="Likes  tea"), replace(sunday[0], state="resolved"))
    rows = [
        row(Kind.WEEK, "2026-03-02", details=week),
        row(Kind.DAY, "2026-03-08", details=sunday),
        row(Kind.DAY, "2026-03-09", details=monday),
    ]
    told = [detail.text for detail in remember(rows, room=1_000, size=len)]
    assert told == ["call the vet", "シロに薬", "回答待ち", "Likes  tea", "喜欢爬山"]
    assert [detail.text for detail in remember(rows, room=17, size=len)] == ["call the vet", "シロに薬"]
    assert remember(rows, room=0, size=len) == ()


@pytest.mark.rule("RS-159", "RS-158")
@given(
    st.lists(st.integers(0, 60 * 24 * 9), min_size=1, max_size=60, unique=True), st.sets(st.integers(1, 60)),
    st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Kiritimati"]), st.integers(0, 11), st.integers(0, 12),
)  # fmt: skip
def test_every_message_is_covered_once_or_raw_whatever_zone_and_hour(minutes: list[int], covered: set[int], zone: str, hour: int, tail: int) -> None:
    talk = [Stamp(seq=n, at=at("2026-03-05T00:00") + timedelta(minutes=each)) for n, each in enumerate(sorted(minutes), 1)]
    clock = Clock(zone=ZoneInfo(zone), rollover_hour=hour)
    uncovered = [message for message in talk if message.seq not in covered]
    waiting = [seq for day in uncovered_days(uncovered, clock) for seq in day.seqs]
    assert sorted(waiting) == [message.seq for message in uncovered]
    sent = raw(talk, covered, clock, talk[-1].at, tail=tail)
    assert set(sent) | covered >= {message.seq for message in talk}
    assert sent == sorted(set(sent))
