"""What a line may say: numbers, links, addresses, handles and dates of its support (WD-70)."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.evidence import unsupported

pytestmark = pytest.mark.rule("WD-70")

SUNDAY = date(2026, 3, 8)


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("Rent is 1,200 euros", "my rent is 1200 €"),
        ("Rent is 1200 euros", "my rent is 1.200 €"),
        ("家賃は１２００円", "家賃は1,200円です"),
        ("家賃は1200円", "家賃は１２００円です"),
        ("Has 3 cats", "I have three cats"),
        ("猫が3匹いる", "うちには猫が三匹います"),
        ("养了12只猫", "我养了十二只猫"),
        ("Pi is 3.14 here", "π = 3,14"),
        ("Uses Python 3.11.4", "python 3.11.4, of course"),
        ("Meets at 14:30", "see you at 2:30 pm"),
        ("15時に会う", "午後3時に会おう"),
        ("Mail: anna@example.org", "write to Anna@Example.org."),
        ("Docs at https://example.com/a/b", "(see https://example.com/a/b)."),
        ("Site: example.com", "https://example.com/ or example.com"),
        ("Is @anna_k on Telegram", "find me as @Anna_K"),
        ("Flat of 80 m²", "80 m2 flat, 80 square metres"),
        ("عمره ٣٥ سنة", "I am 35"),
        ("Agent 007", "call me 7"),
        ("No digits at all", ""),
    ],
)
def test_what_the_support_holds_may_be_said(text: str, support: str) -> None:
    assert unsupported(text, [support], [SUNDAY]) == ()


@pytest.mark.parametrize(
    ("text", "support", "missing"),
    [
        ("Rent is 1,300 euros", "my rent is 1200 €", ("1,300",)),
        ("家賃は１３００円", "家賃は1200円", ("1300",)),
        ("Has 4 cats", "I have three cats", ("4",)),
        ("Mail: anna@evil.org", "anna@example.org", ("anna@evil.org",)),
        ("See https://example.com/a/bc", "https://example.com/a/b", ("https://example.com/a/bc",)),
        ("See evil.com", "example.com", ("evil.com",)),
        ("Is @anna on Telegram", "anna is on Telegram", ("@anna",)),
        ("Lives at 12 Oak Street, born 1980", "12 Oak Street", ("1980",)),
        ("Phone 090-1234-5678", "phone 090-1234-5679", ("5678",)),
        ("3月9日に会う", "また会おう", ("3月9日",)),
        ("生日是5月1日", "我喜欢蛋糕", ("5月1日",)),
        ("Wedding on 2026-06-01", "we will marry", ("2026-06-01",)),
        ("Wedding on June 1, 2026", "we will marry", ("june 1, 2026",)),
        ("Moved in 1999", "we moved long ago", ("1999",)),
    ],
)
def test_what_the_support_does_not_hold_is_named(text: str, support: str, missing: tuple[str, ...]) -> None:
    assert unsupported(text, [support], [SUNDAY]) == missing


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("Trip on 2026-03-08", "the trip is today"),
        ("Trip on 2026-03-09", "the trip is tomorrow"),
        ("2026年3月9日に旅行", "明日旅行に行く"),
        ("2026年3月10日去旅行", "后天去旅行"),
        ("Dentist on 10 March 2026", "dentist on Tuesday"),
        ("3月10日に歯医者", "火曜日に歯医者"),
        ("3月10日看牙", "周二看牙"),
        ("Back on 2026-03-22", "back in two weeks"),
        ("3月11日に届く", "三日後に届く"),
        ("3月5日发的", "三天前发的"),
        ("Due in March 2026", "due this month"),
        ("2026年4月に引っ越す", "来月引っ越します"),
        ("2027年结婚", "明年结婚"),
        ("Party on 2026-03-20", "party on March 20"),
        ("Party on March 20", "party on 20.03.2026"),
        ("Party on 2026-03-20", "パーティーは3月20日"),
        ("3月20日にパーティー", "３月２０日"),
        ("3月20日聚会", "三月二十日聚会"),
        ("Party on 2026-03-20", "party on the 20th"),
        ("Party on 2026-03-20", "party 3/20"),
        ("In 2026 all was well", "all is well"),
        ("Born 1980-05-01", "I was born on May 1st, 1980"),
    ],
)
def test_a_date_may_follow_from_when_it_was_said(text: str, support: str) -> None:
    assert unsupported(text, [support], [SUNDAY]) == ()


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("Trip on 2026-03-10", "the trip is tomorrow"),
        ("3月12日に歯医者", "火曜日に歯医者"),
        ("Trip on 2025-03-09", "the trip is tomorrow"),
        ("Party on 2024-03-20", "party on March 20"),
        ("Due on 2026-03-31", "due in March"),
        ("2028年结婚", "明年结婚"),
        ("2026-02-30 is odd", "see you"),
    ],
)
def test_a_date_that_does_not_follow_is_named(text: str, support: str) -> None:
    assert len(unsupported(text, [support], [SUNDAY])) == 1


@given(st.text())
def test_any_text_supports_itself(text: str) -> None:
    assert unsupported(text, [text], []) == ()


@given(st.text(), st.text())
def test_what_is_named_stands_in_no_support(text: str, support: str) -> None:
    for item in unsupported(text, [support], [SUNDAY]):
        assert item.strip()
