"""A chat that went on for two weeks, in three languages: passages, rolling summaries, days and weeks, a window that jumped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from memory import conversations
from memory.recall import chunk_store, chunks, edge_jump, real_talk, summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import Detail, NewSummary, State
from tests.e2e.memory_scenes import store


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """`lines`: said in turn; `summaries`: long-term, consolidated, recent; `week`, `day`: of the calendar; `details`: promise, question, fact."""

    title: str
    speaker: str
    lines: Sequence[str]
    summaries: Sequence[str]
    week: str
    day: str
    details: Sequence[str]


PASTS: Mapping[str, Past] = {
    "en": Past(
        title="Three days in Kyoto",
        speaker="Mira",
        lines=(
            "We would like to see maple leaves without the crowds.", "Late November is the height of the season, so go early.",
            "My mother walks slowly.", "Shinnyo-do has one slope; a taxi can wait at the upper gate.", "And where do we eat soba?",
        ),
        summaries=(
            "Over the year Mira planned several walks with her mother and came to like early mornings in temples.",
            "They chose Kyoto for late November and settled on three slow days with rests in the afternoon.",
            "The tea house Mo-an has chairs; from Shinnyo-do it is 900 metres, mostly flat.",
        ),
        week="A week of plans: the trip has dates, the inn is booked, and only the soba shop is open.",
        day="Mira asked about the way to the tea house and decided against a taxi.",
        details=("Send the opening hours before Friday", "Which soba shop has soft chairs?", "Her mother prefers mats to benches"),
    ),
    "ja": Past(
        title="京都の三日間",
        speaker="葵",
        lines=(
            "人の少ないところで紅葉を見たいです。", "十一月の終わりが盛りなので、朝早くがよいです。", "母はゆっくり歩きます。",
            "真如堂は坂がひとつだけで、上の門まで車で行けます。", "おそばはどこで食べましょう。",
        ),
        summaries=(
            "この一年、葵は母と歩く旅をいくつか考え、朝の寺が好きになりました。", "十一月の終わりに京都へ行き、午後は休む三日間に決めました。",
            "茶房「茂庵」には椅子の席があり、真如堂から九百メートルでほぼ平らです。",
        ),
        week="旅の日取りと宿が決まり、おそば屋さんだけが残った一週間でした。",
        day="葵はお茶のお店までの道を聞き、タクシーはやめることにしました。",
        details=("金曜までに開門の時間を送る", "やわらかい椅子のあるおそば屋さんはどこか", "母は椅子より座敷が好き"),
    ),
    "zh": Past(
        title="京都三日",
        speaker="林晓",
        lines=(
            "想避开人群看红叶。", "十一月底最盛，最好一早出门。", "妈妈走得慢。", "真如堂只有一段坡，出租车可以开到上面的门口。", "荞麦面去哪里吃？",
        ),
        summaries=(
            "这一年林晓计划了几次和妈妈的散步，渐渐喜欢上清晨的寺院。", "她们选定十一月底去京都，三天慢慢走，下午休息。",
            "茶馆“茂庵”有椅子，从真如堂过去九百米，基本是平路。",
        ),
        week="这一周定下了日期和住处，只剩荞麦面店还没选。",
        day="林晓问了去茶馆的路，决定不坐出租车。",
        details=("星期五以前把开门时间发过去", "哪家荞麦面店的椅子软？", "妈妈喜欢榻榻米多过长椅"),
    ),
}  # fmt: skip


def settle(data_dir: Path, chat_id: str, person_id: str, language: str, *, profile: str = "companion") -> None:
    """Gives a chat its past, two weeks of it."""
    past, begin = PASTS[language], datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=14)

    def work(connection: sa.Connection) -> None:
        seqs: list[int] = []
        for at in range(24):
            ours = at % 2 == 1
            seqs.append(conversations.add_message(
                connection, now=begin + timedelta(hours=12 * at, minutes=at), conversation_id=chat_id, role="assistant" if ours else "user",
                text=past.lines[at % 5], origin="assistant" if ours else "person", author_person_id="" if ours else person_id,
                author_name="Yume" if ours else past.speaker, scope="root",
            ).seq)  # fmt: skip
        talk = real_talk.uncut(connection, chat_id)
        for chunk in chunks.cut(talk, (), gap=timedelta(hours=60), part_tokens=400):
            chunk_store.add(connection, chat_id, chunk, begin + timedelta(days=13))
        conversations.change(connection, chat_id, profile=profile, window_edge=seqs[9])
        chat = conversations.conversation(connection, chat_id)
        assert chat is not None
        edge_jump.jump(connection, chat, seqs[17])
        now = begin + timedelta(days=12)
        for kind, text, sources in zip(
            (Kind.LONG_TERM, Kind.CONSOLIDATED, Kind.RECENT), past.summaries, (seqs[:6], seqs[6:10], seqs[10:14]), strict=True
        ):
            summary_rows.add(connection, NewSummary(conversation_id=chat_id, kind=kind, text=text, sources=sources, origin="rolling"), now)
        monday = (begin - timedelta(days=begin.weekday())).date()
        details = tuple(
            Detail(
                text=text, kind=kind, state="resolved" if kind == "question" else "open", due=str(monday + timedelta(days=4)) * (kind == "promise")
            )
            for text, kind in zip(past.details, ("promise", "question", "fact"), strict=True)
        )
        for kind, text, date, sources in (
            (Kind.WEEK, past.week, monday, seqs[:10]), (Kind.DAY, past.day, monday + timedelta(days=8), seqs[10:12]),
        ):  # fmt: skip
            summary_rows.add(connection, NewSummary(
                conversation_id=chat_id, kind=kind, text=text, sources=sources, details=details, local_date=date.isoformat(), zone="UTC",
                rollover_hour=4, origin="calendar",
            ), now)  # fmt: skip
        waits = NewSummary(conversation_id=chat_id, kind=Kind.RECENT, text=past.day, sources=seqs[14:16], state=State.WAITING)
        summary_rows.add(connection, waits, now)

    store(data_dir, work)
