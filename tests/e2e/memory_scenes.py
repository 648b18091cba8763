"""A memory that somebody has lived with for some weeks, in three languages: files, daily notes, dreams, and what waits for a yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from memory import daily, dream_store, proposal_store, provenance
from memory.database import sqlite_url
from memory.diary import Happened, Kind, diary_section
from memory.dream_store import Booking, Dream
from memory.layout import daily_path, diary_path
from memory.lines import line_hash
from memory.proposal_store import Candidate
from memory.provenance import ChangedLine, LineRow, Origin
from memory.schema import spaces
from memory.scope_templates import template
from memory.texts import Section


def today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one person's memory holds. `facts`: lines of MEMORY.md with whose they are; `notes`: lines of a day."""

    about: Sequence[str]
    heading: str
    facts: Sequence[tuple[str, Origin]]
    chat: str
    notes: Sequence[tuple[str, Origin]]
    page: tuple[str, str]
    story: str


MEMORIES: Mapping[str, Memory] = {
    "en": Memory(
        about=("Call me Mira.", "English, and a little Japanese.", "London; my mornings are for writing."),
        heading="Family and travel",
        facts=(
            ("Travels to Kyoto with her mother in late November 2026.", Origin.PERSON),
            ("Her mother walks slowly and prefers few stairs.", Origin.PERSON),
            ("Allergic to shellfish; never suggest oysters.", Origin.HUMAN),
            ("The tea house Mo-an opens at 11:30, says a travel page.", Origin.MIXED),
            ("Wants to learn sourdough with a cold rise of up to three days.", Origin.PERSON),
        ),
        chat="Three days in Kyoto",
        notes=(
            ("Planned three days in Kyoto, with quiet mornings: Shinnyo-dō, Tōfuku-ji, Ōkōchi Sansō.", Origin.PERSON),
            ("A taxi from the station to Shinnyo-dō costs about ¥2,400.", Origin.ASSISTANT),
            ("Asked for a place for soba nearby; open point.", Origin.PERSON),
        ),
        page=("garden", "# The garden\n\nRoses by the wall, moss below.\n\n| Bed | Plant |\n|---|---|\n| North | Ferns |\n| South | Thyme |\n"),
        story="The journey came up three evenings in a row, and the mother’s slow walk with it. I put both in one place and let an old hotel go.",
    ),
    "ja": Memory(
        about=("葵と呼んでください。", "日本語で話します。", "東京。朝は書きものの時間です。"),
        heading="家族と旅",
        facts=(
            ("二〇二六年十一月の終わりに、母と京都へ旅をする。", Origin.PERSON),
            ("母はゆっくり歩き、階段の少ない道を好む。", Origin.PERSON),
            ("甲殻類のアレルギーがある。牡蠣は勧めないこと。", Origin.HUMAN),
            ("茶房「茂庵」は十一時半に開くと、旅のページにあった。", Origin.MIXED),
            ("三日まで冷蔵発酵させるパンを習いたい。", Origin.PERSON),
        ),
        chat="十一月の京都、三日間の旅",
        notes=(
            ("京都の三日間を計画した。朝は静かに、真如堂、東福寺、大河内山荘。", Origin.PERSON),
            ("駅から真如堂までのタクシーはおよそ二千四百円。", Origin.ASSISTANT),
            ("近くのおそば屋さんをまだ決めていない。", Origin.PERSON),
        ),
        page=("庭", "# 庭\n\n塀のそばに薔薇、日陰に苔。\n\n| 花壇 | 植物 |\n|---|---|\n| 北 | しだ |\n| 南 | タイム |\n"),
        story="三晩つづけて旅の話が出て、母の歩みのことも一緒でした。二つを一か所にまとめ、古い宿のことは手放しました。",
    ),
    "zh": Memory(
        about=("叫我林晓。", "说中文。", "上海；早上用来写东西。"),
        heading="家人与旅行",
        facts=(
            ("二〇二六年十一月底和妈妈去京都旅行。", Origin.PERSON),
            ("妈妈走得慢，喜欢台阶少的路。", Origin.PERSON),
            ("对甲壳类过敏，不要推荐牡蛎。", Origin.HUMAN),
            ("旅行网页上说，茶馆“茂庵”十一点半开门。", Origin.MIXED),
            ("想学冷藏发酵三天的面包。", Origin.PERSON),
        ),
        chat="十一月的京都三日行程",
        notes=(
            ("安排了京都三天，早上安静：真如堂、东福寺、大河内山庄。", Origin.PERSON),
            ("从车站坐出租车到真如堂大约两千四百日元。", Origin.ASSISTANT),
            ("附近的荞麦面馆还没有定。", Origin.PERSON),
        ),
        page=("花园", "# 花园\n\n墙边是玫瑰，阴处是青苔。\n\n| 花坛 | 植物 |\n|---|---|\n| 北 | 蕨 |\n| 南 | 百里香 |\n"),
        story="连着三个晚上都说到这次旅行，也说到妈妈走得慢。我把两件事放在一起，把旧的旅馆放下了。",
    ),
}


def store(data_dir: Path, work: Any) -> Any:
    """One transaction beside the gateway's own."""
    engine = sa.create_engine(sqlite_url(data_dir / "yumegate.db"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        return work(connection)


def settle(data_dir: Path, scope: str, language: str) -> None:
    """Writes the files of one scope and the rows about their lines."""
    memory = MEMORIES[language]
    folder = data_dir.parent if scope == "root" else data_dir.parent / scope
    for name in ("memory/dreams", "knowledge"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    hint = template("MEMORY.md", language).partition("\n\n")[2]
    facts = "".join(f"- {words}\n" for words, _ in memory.facts)
    title = template("MEMORY.md", language).partition("\n")[0]
    (folder / "MEMORY.md").write_text(f"{title}\n\n{hint}\n## {memory.heading}\n\n{facts}", encoding="utf-8")
    (folder / "user.md").write_text("".join(f"- {line}\n" for line in memory.about), encoding="utf-8")
    (folder / "knowledge" / f"{memory.page[0]}.md").write_text(memory.page[1], encoding="utf-8")
    for back in (0, 1, 2, 5, 6, 9, 20, 33):
        day = today() - timedelta(days=back)
        (folder / daily_path(day)).write_text(_day(memory, day), encoding="utf-8")
        if back in (1, 5, 33):
            (folder / diary_path(day)).write_text(f"# Dream Diary: {day}\n\n{memory.story}\n", encoding="utf-8")
    store(data_dir, lambda connection: _provenance(connection, scope, memory))


def _day(memory: Memory, day: date) -> str:
    lines = [words for words, _ in memory.notes]
    text = daily.title(day) + "\n\n" + daily.block("", Section.TRIMMED, memory.chat, time(10, 40), lines[:1])
    return text + "\n" + daily.block(text, Section.SUMMARY, memory.chat, time(23, 55), lines[1:])


def _provenance(connection: sa.Connection, scope: str, memory: Memory) -> None:
    at = datetime.now(UTC) - timedelta(days=3)
    facts = [LineRow(hash=line_hash(words), origin=origin, author="dream") for words, origin in memory.facts if origin is not Origin.HUMAN]
    provenance.put_lines(connection, scope, "MEMORY.md", facts, at)
    for back in (0, 1, 2, 5, 6, 9, 20, 33):
        day = today() - timedelta(days=back)
        notes = [
            LineRow(hash=line_hash(words), origin=origin, author="summary", local_date=str(day), used_by="n-earlier" if back else "")
            for words, origin in memory.notes
        ]
        provenance.put_lines(connection, scope, daily_path(day), notes, at)


def dream(data_dir: Path, scope: str, language: str) -> None:
    """Two dreams of earlier nights, one that was refused, and a line that waits for a yes. Written by `settle` is what the first of them left."""
    memory, now = MEMORIES[language], datetime.now(UTC)
    facts, notes = [words for words, _ in memory.facts], [words for words, _ in memory.notes]
    evidence = (line_hash(notes[0]),)

    def line(words: str) -> ChangedLine:
        row = LineRow(hash=line_hash(words), origin=Origin.PERSON, author="dream", evidence=evidence)
        return ChangedLine(text=words, section=memory.heading, row=row)

    kept = (
        _happened("added", facts[0]), _happened("merged", facts[1], old=(notes[0], notes[2])), _happened("dropped", notes[1], reason="outdated"),
        _happened("candidate", facts[3]), _happened("left_out", notes[1], reason="unsupported"),
    )  # fmt: skip
    first = Dream(
        id=dream_store.new_id(), scope=scope, local_date=str(today() - timedelta(days=1)), state="applying", trigger="night", changes=kept,
        booking=Booking(added=(line(facts[0]), line(facts[1])), removed=(line(notes[1]),)), diary=_diary(memory, kept),
    )  # fmt: skip
    older = replace(
        first, id=dream_store.new_id(), local_date=str(today() - timedelta(days=5)), state="done", trigger="manual", booking=Booking(),
        changes=(_happened("added", facts[4]),), ended_at=now,
    )  # fmt: skip
    gone = tuple(_happened("dropped", words, reason="temporary") for words, origin in memory.facts if origin is not Origin.HUMAN)
    refused = replace(
        first, id=dream_store.new_id(), local_date=str(today()), state="refused", trigger="manual", changes=gone, booking=Booking(),
        diary="", reason=f"lines: {len(gone)} of {len(gone)}, limit 1", ended_at=now,
    )  # fmt: skip

    def work(connection: sa.Connection) -> None:
        dream_store.put(connection, older, now - timedelta(days=5))
        dream_store.put(connection, first, now - timedelta(days=1))
        dream_store.book(connection, first, "", now - timedelta(days=1))
        dream_store.finish(connection, first.id, now - timedelta(days=1))
        dream_store.put(connection, refused, now)
        until = now + proposal_store.KEPT
        payload = {"dream": refused.id, "refusal": {"kind": "lines", "lost": len(gone), "total": len(gone), "limit": 1}}
        proposal_store.propose(connection, scope, "dream", payload, run_id=refused.id, now=now, expires_at=until)
        row = LineRow(hash=line_hash(notes[1]), origin=Origin.MIXED, author="dream")
        waits = Candidate(text=notes[1], section=memory.heading, row=row)
        dream_store.settle(connection, replace(older, booking=Booking(candidates=(waits,))), now)

    store(data_dir, work)


def _happened(kind: Kind, words: str, *, old: tuple[str, ...] = (), reason: str = "") -> Happened:
    return Happened(kind=kind, text=words, old=old, reason=reason, hashes=(line_hash(words), *map(line_hash, old)))


def _diary(memory: Memory, changes: tuple[Happened, ...]) -> str:
    names = ("added", "changed", "merged", "dropped", "candidate", "left_out", "kept_out", "outdated", "unsupported")
    return diary_section("23:55", memory.story, changes, {name: name for name in names})


def add_space(data_dir: Path, space: str, title: str) -> None:
    values = {"id": space, "channel": "telegram", "account": "main", "platform_space_id": space, "title": title, "created_at": datetime.now(UTC)}
    store(data_dir, lambda connection: connection.execute(sa.insert(spaces).values(values)))
