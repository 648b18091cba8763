"""Daily notes over HTTP: the days of a month, one day with its sections, and where each line is from."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path

import pytest

from memory.daily import block, title
from memory.provenance import Origin
from memory.texts import Section
from tests.gateway.test_memory_files import call, house, put, remember_line

DAY = date(2026, 3, 8)
TALK = {
    "en": ("Trip to Kyoto", "They fly on 20 November.", "Mother walks slowly."),
    "ja": ("京都の旅", "十一月二十日に出発する。", "母はゆっくり歩く。"),
    "zh": ("京都之行", "十一月二十日出发。", "妈妈走得慢。"),
}


def daily(language: str) -> str:
    label, one, two = TALK[language]
    text = title(DAY) + "\n\n" + block("", Section.TRIMMED, label, time(9, 30), [one])
    return text + "\n" + block(text, Section.SUMMARY, label, time(23, 55), [two])


@pytest.mark.rule("WD-4", "WD-67")
@pytest.mark.parametrize("language", TALK)
async def test_a_day_shows_its_sections_and_where_each_line_is_from(tmp_path: Path, language: str) -> None:
    label, one, two = TALK[language]
    async with house(tmp_path) as gateway:
        put(gateway, "memory/2026-03-08.md", daily(language) + "- by hand\n")
        remember_line(gateway, "root", "memory/2026-03-08.md", one, Origin.PERSON, "summary", local_date="2026-03-08", used_by="d-1")
        remember_line(gateway, "root", "memory/2026-03-08.md", two, Origin.MIXED, "summary", local_date="2026-03-08")
        status, day = await call(gateway, "GET", "days/2026-03-08")
        assert (status, day["date"], day["path"], day["diary"]) == (200, "2026-03-08", "memory/2026-03-08.md", False)
        assert [section["title"] for section in day["sections"]] == ["Trimmed Context", "Daily Summary"]
        assert [group["title"] for section in day["sections"] for group in section["groups"]] == [f"09:30 {label}", f"23:55 {label}"]
        lines = [line for section in day["sections"] for group in section["groups"] for line in group["lines"]]
        assert [(line["origin"], line["author"], line["used"]) for line in lines] == [
            ("person", "summary", True), ("mixed", "summary", False), ("human", "", False),
        ]  # fmt: skip
        assert one in lines[0]["html"]


@pytest.mark.rule("WD-2", "WD-78", "WD-23")
async def test_a_month_lists_the_days_that_have_something(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "memory/2026-03-08.md", daily("en"))
        put(gateway, "memory/2026-03-09.md", "# Daily Memory: 2026-03-09\n\n## Daily Summary\n")
        put(gateway, "memory/2026-03-10.md", b"\xff")
        put(gateway, "memory/2026-04-01.md", "- April\n")
        put(gateway, "memory/dreams/2026-03-08.md", "A dream.\n")
        put(gateway, "memory/dreams/2026-03-11.md", "A dream.\n")
        put(gateway, "memory/notes.md", "- of no day\n")
        put(gateway, "memory/2026-02-30.md", "- of a date that is none\n")
        put(gateway, "memory/dreams/2026-02-30.md", "A dream of no night.\n")
        _, month = await call(gateway, "GET", "days", params={"month": "2026-03"})
        assert month["months"] == ["2026-03", "2026-04"]
        assert [(each["date"], each["lines"], each["daily"], each["diary"]) for each in month["days"]] == [
            ("2026-03-08", 2, True, True), ("2026-03-09", 0, True, False), ("2026-03-10", None, True, False), ("2026-03-11", 0, False, True),
        ]  # fmt: skip
        _, empty = await call(gateway, "GET", "days", params={"month": "2025-01"})
        assert (empty["days"], empty["months"]) == ([], ["2026-03", "2026-04"])
        assert len((await call(gateway, "GET", "days"))[1]["month"]) == 7
        assert (await call(gateway, "GET", "days", params={"month": "2026-02"}))[1]["days"] == []
        _, listed = await call(gateway, "GET", "files")
        roles = {each["path"]: each["role"] for each in listed["files"]}
        assert {roles[path] for path in ("memory/notes.md", "memory/2026-02-30.md", "memory/dreams/2026-02-30.md")} == {"other"}
        assert (await call(gateway, "GET", "days/2026-03-10"))[0] == 422
        assert (await call(gateway, "GET", "days/2026-03-11"))[1]["sections"] == []


@pytest.mark.rule("RL-51")
async def test_a_day_that_is_none_is_not_there_and_a_month_that_is_none_is_a_bad_request(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        for wrong in ("2026-03-08", "2026-02-30", "2026-3-8", "today", "..%2f..", "2026-03-08.md"):
            assert (await call(gateway, "GET", f"days/{wrong}"))[0] == 404, wrong
        for wrong in ("2026-13", "2026", "2026-3", "x", "2026-03-08"):
            status, refused = await call(gateway, "GET", "days", params={"month": wrong})
            assert (status, refused["error"]["param"]) == (400, "month")
