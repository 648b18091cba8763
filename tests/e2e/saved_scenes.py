"""Saved memories that somebody has lived with for some months, in three languages: pins, sleeping ones, limits, and what the AI changed lately."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from memory.database import sqlite_url
from memory.ids import new_space
from memory.saved import hand, store
from memory.saved.hand import Hand
from memory.saved.journal import Writer
from memory.saved.lineages import lineage_of
from memory.saved.rows import ListKey, Origin, character_list, global_list, space_list
from memory.saved.writing import Limits, New
from memory.saved_schema import memories, memory_decay
from memory.schema import people, spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """`own`: of the GLOBAL list, the first two pinned, the last two asleep; `tag`: of the third; `by_model`: saved in replies; `changed`: what the
    second of these said before."""

    own: Sequence[str]
    tag: str
    by_model: Sequence[str]
    changed: str
    place: str
    of_place: str
    describe: str


SAVED: Mapping[str, Saved] = {
    "en": Saved(
        own=(
            "Wants to be called Mira, never Miranda.",
            "Allergic to shellfish: no oysters, no prawns, no fish sauce.",
            "Has a grey cat, Ash, who is afraid of thunder.",
            "Writes in the mornings and does not want to be asked anything before ten.",
            "Her mother walks slowly and prefers few stairs; on 24 November 2026 they travel to Kyoto together for three days.",
            "Used to play the cello.",
            "Is looking for a second-hand bicycle.",
        ),
        tag="cat, Ash",
        by_model=("Promised to show the first chapter on 3 December 2026.", "Would rather be teased than praised."),
        changed="Likes to be teased.",
        place="Reading circle",
        of_place="The circle meets on Fridays at seven; Ben brings the cake.",
        describe="I am called Mira. No shellfish, please.",
    ),
    "ja": Saved(
        own=(
            "「葵」と呼んでほしい。「葵さん」はやめてほしい。",
            "甲殻類のアレルギーがある。えび、かに、魚醤は避ける。",
            "灰色の猫「灰音」を飼っている。雷が苦手。",
            "午前中は原稿を書いているので、十時前には質問しないでほしい。",
            "母はゆっくり歩き、階段の少ない道が好き。2026年11月24日から三日間、一緒に京都へ行く。",
            "昔チェロを弾いていた。",
            "中古の自転車を探している。",
        ),
        tag="猫、灰音",
        by_model=("2026年12月3日に第一章を見せると約束した。", "褒められるより、からかわれるほうが好き。"),
        changed="からかわれるのが好き。",
        place="読書会",
        of_place="会は毎週金曜の七時から。ケーキはベンが持ってくる。",
        describe="葵と呼んでください。甲殻類は食べられません。",
    ),
    "zh": Saved(
        own=(
            "希望叫她“晓晓”，不要叫全名。",
            "对甲壳类过敏：不吃虾、蟹，也不要鱼露。",
            "养了一只灰猫，叫小雾，怕打雷。",
            "上午要写作，十点以前请不要问她问题。",
            "妈妈走得慢，喜欢台阶少的路。2026年11月24日起两人一起去京都三天。",
            "以前拉过大提琴。",
            "正在找一辆二手自行车。",
        ),
        tag="猫、小雾",
        by_model=("答应在2026年12月3日给看第一章。", "比起被夸奖，更喜欢被开玩笑。"),
        changed="喜欢被开玩笑。",
        place="读书会",
        of_place="每周五晚上七点聚会，蛋糕由本带来。",
        describe="请叫我晓晓。我不吃虾蟹。",
    ),
}


def settle(data_dir: Path, person: str, language: str, *, character: str = "Yume") -> None:
    """Fills the lists of a person, and one of a place that the owner manages."""
    saved, now = SAVED[language], datetime.now(UTC)
    with _store(data_dir) as connection:
        lineage = lineage_of(connection, "default", character, now)
        made = [_add(connection, global_list(person), text, person, now - timedelta(days=40 - 6 * at)) for at, text in enumerate(saved.own)]
        for memory_id in made[:2]:
            store.pin(connection, memory_id, now - timedelta(days=20), by=person, limits=Limits())
        store.set_tags(connection, made[2], [word.strip() for word in saved.tag.replace("、", ",").split(",")])
        store.set_private(connection, made[3], False)
        _decay(connection, made[4], unused_days=3, last_matched_at=now - timedelta(days=4))
        for memory_id in made[5:]:
            _decay(connection, memory_id, unused_days=7, dormant=True)
        of_model = character_list(person, lineage)
        first = _hand(connection, person, of_model, "t-scene-1")
        for text in (saved.by_model[0], saved.changed):
            hand.save(connection, first, New(key=of_model, content=text, origin=Origin.TOOL, author_kind="model"), now - timedelta(hours=3))
        (last,) = connection.execute(sa.select(memories).where(memories.c.content == saved.changed, memories.c.person_id == person)).all()
        second = _hand(connection, person, of_model, "t-scene-2", {last.id: last.revision})
        hand.update(connection, second, last.id, saved.by_model[1], now - timedelta(hours=1))
        space = new_space()
        values = {"id": space, "channel": "telegram", "account": "main", "platform_space_id": space, "title": saved.place, "created_at": now}
        connection.execute(sa.insert(spaces), values)
        _add(connection, space_list(space, lineage), saved.of_place, person, now - timedelta(days=2))


def _add(connection: sa.Connection, key: ListKey, text: str, person: str, at: datetime) -> int:
    new = New(key=key, content=text, origin=Origin.PANEL, author_kind="person", author_id=person, protected=True)
    done = store.add(connection, new, at, limits=Limits())
    assert done.memory is not None
    return done.memory.id


def _decay(connection: sa.Connection, memory_id: int, **values: object) -> None:
    connection.execute(sa.update(memory_decay).where(memory_decay.c.memory_id == memory_id).values(**values))


def _hand(connection: sa.Connection, person: str, key: ListKey, turn: str, sent: Mapping[int, str] | None = None) -> Hand:
    return Hand(
        writer=Writer(actor="tool", turn_id=turn, attempt=1), lists=frozenset({key}), sent=sent or {}, visible=(), search_ok=True, ageing_on=True,
        private=True, operations_max=10, limits=Limits(),
    )  # fmt: skip


def put_to_sleep(data_dir: Path, content: str) -> None:
    """As if nobody had needed it for a week, and a program had made it."""
    with _store(data_dir) as connection:
        here = sa.select(memories.c.id).where(memories.c.content == content)
        connection.execute(sa.update(memory_decay).where(memory_decay.c.memory_id.in_(here)).values(unused_days=7, dormant=True))
        connection.execute(sa.update(memories).where(memories.c.content == content).values(protected=False))


def subscribe(data_dir: Path, person: str) -> None:
    with _store(data_dir) as connection:
        until = datetime.now(UTC).date() + timedelta(days=30)
        connection.execute(sa.update(people).where(people.c.id == person).values(subscriber_until=until))


@contextmanager
def _store(data_dir: Path) -> Generator[sa.Connection]:
    """One transaction beside the gateway's own."""
    with sa.create_engine(sqlite_url(data_dir / "yumegate.db"), poolclass=sa.NullPool).begin() as connection:
        yield connection
