"""Summary entries of a chat that went on for some weeks, in three languages: some on, some off, one by hand, two that wait for a yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from memory import conversations
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from tests.e2e.memory_scenes import store
from tests.e2e.recall_scenes import PASTS

SAID = 60  # messages
COVERED = 40  # of them in the entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaps:
    """`rows`: title and text of entries, the oldest talk first; `waits`: the same of those that wait."""

    rows: Sequence[tuple[str, str]]
    waits: Sequence[tuple[str, str]]


RECAPS: Mapping[str, Recaps] = {
    "en": Recaps(
        rows=(
            ("The first plan", "Mira wants to see maple leaves in Kyoto with her mother, away from the crowds, in the last week of November."),
            ("", "Of two inns they took Moss: rooms without steps, a bath on the same floor, three nights."),
            ("Walking slowly", "Her mother walks slowly and tires after noon, so afternoons stay free; a taxi can wait at the upper gate."),
            ("", "Tea at Mo-an was chosen because it has chairs; from the temple it is 900 metres, mostly flat."),
            ("Soba", "Three soba shops were compared; none has soft chairs, so the question stays open."),
        ),
        waits=(
            ("The train", "Mira takes the train at 9:03 and has seats on the side from which the mountain can be seen."),
            ("", "The weather turns cold; both bring a warm coat and an umbrella."),
        ),
    ),
    "ja": Recaps(
        rows=(
            ("はじめの計画", "葵は十一月の最後の週に、母と人の少ない京都で紅葉を見たいと話した。"),
            ("", "宿をふたつ比べ、段差のない部屋と同じ階にお風呂のある「こけ庵」を三泊で予約した。"),
            ("ゆっくり歩く", "母はゆっくり歩き、昼を過ぎると疲れる。午後は空けておき、真如堂の上の門にタクシーを待たせることにした。"),
            ("", "椅子の席があるので、お茶は「茂庵」に決めた。寺から九百メートルで、ほぼ平らな道。"),
            ("おそば", "おそば屋さんを三軒比べたが、やわらかい椅子のある店はなく、まだ決まっていない。"),
        ),
        waits=(
            ("列車", "葵は九時三分の列車に乗り、山の見える側の席を取った。"),
            ("", "寒くなるので、ふたりとも暖かいコートと傘を持っていく。"),
        ),
    ),
    "zh": Recaps(
        rows=(
            ("最初的计划", "林晓想在十一月最后一周带妈妈去京都看红叶，避开人群。"),
            ("", "比较了两家旅馆，“苔庵”房间没有台阶，同一层有浴室，订了三晚。"),
            ("慢慢走", "妈妈走得慢，午后容易累。下午留空，出租车可以在真如堂上面的门口等。"),
            ("", "茶馆选了“茂庵”，因为有椅子；从寺里过去九百米，基本是平路。"),
            ("荞麦面", "比较了三家荞麦面店，都没有软椅子，还没定下来。"),
        ),
        waits=(
            ("火车", "林晓坐九点零三分的火车，座位在看得见山的一侧。"),
            ("", "天气转冷，两个人都带厚外套和雨伞。"),
        ),
    ),
}


def settle(data_dir: Path, chat_id: str, person_id: str, language: str, *, waits: bool = True, many: int = 1) -> list[int]:
    """Gives a chat its talk and its entries, `many` times over; ids of the entries, the oldest talk first."""
    past, recaps = PASTS[language], RECAPS[language]
    begin = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=20)

    def work(connection: sa.Connection) -> list[int]:
        seqs: list[int] = []
        for at in range(SAID):
            ours = at % 2 == 1
            seqs.append(conversations.add_message(
                connection, now=begin + timedelta(hours=7 * at), conversation_id=chat_id, role="assistant" if ours else "user",
                text=past.lines[at % 5], origin="assistant" if ours else "person", author_person_id="" if ours else person_id,
                author_name="Yume" if ours else past.speaker, scope="root",
            ).seq)  # fmt: skip
        now, rows = begin + timedelta(days=19), [*recaps.rows] * many
        made: list[int] = []
        share = COVERED // len(rows)
        for at, (title, text) in enumerate(rows):
            off = at % 5 in (1, 3)
            made.append(summary_rows.add(connection, NewSummary(
                conversation_id=chat_id, kind=Kind.ENTRY, title=title, text=text, sources=seqs[share * at : share * (at + 1)],
                state=State.INACTIVE if off else State.ACTIVE, origin=("asked", "automatic", "written", "asked", "automatic")[at % 5],
            ), now))  # fmt: skip
        if waits:
            for at, (title, text) in enumerate(recaps.waits):
                summary_rows.add(connection, NewSummary(
                    conversation_id=chat_id, kind=Kind.ENTRY, title=title, text=text, sources=seqs[COVERED + 5 * at : COVERED + 5 * (at + 1)],
                    state=State.WAITING, origin="automatic",
                ), now)  # fmt: skip
        return made

    return store(data_dir, work)
