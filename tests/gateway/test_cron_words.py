"""A rule in words, in three languages."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.language import LANGUAGES
from gateway.tasks.cron import parse
from gateway.tasks.cron_words import explain, moment

pytestmark = pytest.mark.rule("WD-132")


@pytest.mark.parametrize(
    ("rule", "english", "japanese", "chinese"),
    [
        ("0 9 * * *", "every day at 09:00", "毎日 09:00", "每天 09:00"),
        ("0 9 * * 1", "every Monday at 09:00", "毎週月曜日 09:00", "每周一 09:00"),
        ("0 9,18 * * 1-5", "every Monday to Friday at 09:00 and 18:00", "毎週月曜日〜金曜日 09:00と18:00", "每周一至周五 09:00和18:00"),
        ("30 7 * * 6,0", "every Saturday and Sunday at 07:30", "毎週土曜日と日曜日 07:30", "每周六和周日 07:30"),
        ("0 8 1,15 * *", "on the 1st and 15th of each month at 08:00", "毎月1日と15日 08:00", "每月1日和15日 08:00"),
        ("0 0 29 2 *", "on the 29th of February at 00:00", "毎年2月の29日 00:00", "每年2月的29日 00:00"),
        ("0 9 * jun-aug *", "every day in June to August at 09:00", "6月〜8月の毎日 09:00", "6月至8月的每天 09:00"),
        ("0 9 * 12 0", "every Sunday in December at 09:00", "12月の毎週日曜日 09:00", "12月的每周日 09:00"),
        ("0 0 13 * 5", "on the 13th of each month and also every Friday at 00:00", "毎月13日、および毎週金曜日 00:00", "每月13日，以及每周五 00:00"),
        (
            "0 0 1-7 * */7",
            "on the 1st to 7th of each month, Sunday only at 00:00",
            "毎月1日〜7日（日曜日のときだけ） 00:00",
            "每月1日至7日（仅限周日） 00:00",
        ),
        ("* * * * *", "every minute", "1 分ごと", "每分钟"),
        ("@hourly", "every hour", "1 時間ごと", "每小时"),
        ("*/15 * * * *", "every 15 minutes", "15 分ごと", "每 15 分钟"),
        ("5,35 * * * *", "at minute 5 and 35 of each hour", "毎時5と35分", "每小时的第5和35分钟"),
        ("0 8-20 * * *", "every hour from 08:00 to 20:00", "08:00〜20:00 のあいだ 1 時間ごと", "08:00至20:00 每小时"),
        (
            "*/30 9-17 * * mon",
            "every Monday every 30 minutes from 09:00 to 17:30",
            "毎週月曜日 09:00〜17:30 のあいだ 30 分ごと",
            "每周一 09:00至17:30 每 30 分钟",
        ),
        ("0 0,6,12,18 * * *", "every day at 00:00, 06:00, 12:00 and 18:00", "毎日 00:00、06:00、12:00と18:00", "每天 00:00、06:00、12:00和18:00"),
    ],
)
def test_a_rule_is_repeated_in_words(rule: str, english: str, japanese: str, chinese: str) -> None:
    assert [explain(parse(rule), language) for language in LANGUAGES] == [english, japanese, chinese]


def test_an_instant_is_shown_on_the_clock_of_its_zone() -> None:
    at = datetime(2026, 8, 2, 23, 30, tzinfo=UTC)
    assert moment(at, ZoneInfo("Asia/Tokyo"), "en") == "2026-08-03 08:30 (Monday)"
    assert moment(at, ZoneInfo("America/New_York"), "ja") == "2026-08-02 19:30（日曜日）"
    assert moment(at, ZoneInfo("Asia/Shanghai"), "zh") == "2026-08-03 07:30（周一）"


fields = st.sampled_from(["*", "*/2", "1", "1-3", "1,4", "1-5/2"])


@given(st.tuples(fields, fields, fields, fields, fields), st.sampled_from(LANGUAGES))
@settings(max_examples=200)
def test_every_rule_has_words_and_none_is_left_open(parts: tuple[str, ...], language: str) -> None:
    words = explain(parse(" ".join(parts)), language)
    assert words.strip() == words != ""
    assert not set("{}*/") & set(words)
