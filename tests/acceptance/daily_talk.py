"""Scripted daily talk in English, Japanese and Chinese, and a helper model that sums it up as long as it may."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from agent.llm.port import ModelRequest
from tests.gateway.rows_house import said


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """`asks` and `answers`: of a pair of messages, with `{n}` and the day; `sums`: a sentence of a summary; `word`: what one of its words is."""

    asks: str
    answers: str
    more: str
    sums: str
    promise: str
    question: str
    fact: str
    asks_fact: str


EN = Tongue(
    asks="On {day} I walked to the harbour for the {n}th time and thought about the boat that we want to mend before summer comes.",
    answers="Walk {n} of {day} sounds good. The boat needs new planks and a coat of paint,",
    more=" and the planks should dry for a week before anybody nails them down, or they will warp in the first rain.",
    sums="The harbour, the boat and its planks were talked over once more.",
    promise="Ana brings the paint for plank {n}",
    question="Who lends the saw for plank {n}?",
    fact="The spare key hangs behind the barometer in Okonkwo's workshop.",
    asks_fact="where did we say the spare key hangs in Okonkwo's workshop?",
)
JA = Tongue(
    asks="{day}、今日で{n}回目の港の散歩。夏が来る前に直したい船のことを考えていた。",
    answers="{day}の{n}回目の散歩、いいですね。船には新しい板とペンキが要ります。",
    more="板は釘で打つ前に一週間乾かさないと、最初の雨で反ってしまいます。",
    sums="港と船とその板について、もう一度話した。",
    promise="アナが{n}枚目の板のペンキを持ってくる",
    question="{n}枚目の板ののこぎりは誰が貸す?",
    fact="合鍵は大久保の工房の気圧計の裏に掛かっている。",
    asks_fact="大久保の工房の合鍵はどこに掛けたと言った?",
)
ZH = Tongue(
    asks="{day},我今天第{n}次走到港口,想着夏天之前要修好的那条船。",
    answers="{day}的第{n}次散步听起来不错。船需要新木板和油漆。",
    more="木板钉上去之前要晾干一个星期,不然第一场雨就会变形。",
    sums="又谈了一次港口、船和它的木板。",
    promise="安娜带来第{n}块木板的油漆",
    question="第{n}块木板的锯子谁来借?",
    fact="备用钥匙挂在欧阳师傅作坊的气压计后面。",
    asks_fact="欧阳师傅作坊的备用钥匙挂在哪里?",
)
TONGUES: Mapping[str, tuple[Tongue, ...]] = {"en": (EN,), "ja": (JA,), "zh": (ZH,)}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def a_day(tongues: tuple[Tongue, ...], day: date, pairs: int, *, length: int = 1) -> Iterator[tuple[datetime, str, str]]:
    """`(when, role, text)` of so many questions and answers, from 09:00 UTC on. `length`: sentences at the end of an answer."""
    at = datetime.combine(day, time(9), UTC)
    for n in range(pairs):
        tongue = tongues[n % len(tongues)]
        yield at, "user", tongue.asks.format(day=day, n=n + 1)
        yield at + timedelta(minutes=5), "assistant", tongue.answers.format(day=day, n=n + 1) + tongue.more * length
        at += timedelta(minutes=10)


def as_long_as_it_may(request: ModelRequest) -> str:
    """A summary of every request: as many sentences as were asked for, a promise, a question and two facts for each day. A fold keeps what is open
    of its newest details; a promise is resolved half of the time."""
    text = request.messages[-1].text
    tongue = JA if re.search("[ぁ-ん]", text) else ZH if re.search("[一-鿿]", text) else EN
    asked = re.search(r"[Aa]t most (\d+) words", request.messages[0].text)
    day = next(iter(_DATE.findall(text)), "2026-01-01")
    number = date.fromisoformat(day).toordinal()
    words = int(asked[1]) if asked else 45
    per = len(tongue.sums.split()) if tongue is EN else len(tongue.sums) // 2
    lines = [tongue.sums] * max(1, words // per)
    details = json.loads(said(request))["details"][-8:] if asked else [
        {"kind": "promise", "state": ("open", "resolved")[number % 2], "due": day, "text": tongue.promise.format(n=number)},
        {"kind": "question", "text": tongue.question.format(n=number)},
        {"kind": "fact", "text": tongue.asks.format(day=day, n=number)},
        {"kind": "event", "text": tongue.answers.format(day=day, n=number)},
    ]  # fmt: skip
    return json.dumps({"details": details, "text": f"{day}: {' '.join(lines)}"}, ensure_ascii=False)
