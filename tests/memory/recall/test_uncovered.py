"""What no summary stands for, found without a look at every message of a long chat (RS-44, RS-47, RS-51)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from memory import conversations
from memory.database import Database
from memory.recall import summary_rows, uncovered
from memory.recall.kinds import ROLLING, Kind
from memory.recall.summary_rows import NewSummary, State
from memory.schema import messages

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
LEFT = 12  # messages that no row stands for


def chat_of(c: sa.Connection, count: int, key: str) -> tuple[str, list[int]]:
    chat = conversations.create_conversation(c, now=NOW, key=key, channel="telegram", account="main", kind="dm")
    first = conversations.add_message(c, now=NOW, conversation_id=chat, role="assistant", origin="assistant", scope="root", text="x")
    row = dict(c.execute(sa.select(messages).where(messages.c.seq == first.seq)).mappings().one())
    del row["seq"]
    c.execute(sa.insert(messages), [{**row, "id": f"{key}-{n}"} for n in range(1, count)])
    return chat, list(c.execute(sa.select(messages.c.seq).where(messages.c.conversation_id == chat).order_by(messages.c.seq)).scalars())


def rows_for(c: sa.Connection, chat: str, seqs: list[int]) -> list[int]:
    """Recent rows of ten messages each, four of which became one, as the jobs leave them."""
    recent = [
        summary_rows.add(c, NewSummary(conversation_id=chat, kind=Kind.RECENT, text="t", sources=seqs[at : at + 10]), NOW)
        for at in range(0, len(seqs), 10)
    ]
    return [
        summary_rows.add(c, NewSummary(
            conversation_id=chat, kind=Kind.CONSOLIDATED, text="t", sources=seqs[10 * at : 10 * (at + 4)], inputs=recent[at : at + 4],
        ), NOW)
        for at in range(0, len(recent), 4)
    ]  # fmt: skip


def steps(c: sa.Connection, work: Callable[[], object]) -> int:
    """Hundreds of instructions that SQLite takes for it."""
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    raw = c.connection.driver_connection
    assert raw is not None
    raw.set_progress_handler(count, 100)
    work()
    raw.set_progress_handler(None, 0)
    return counted[0]


@pytest.mark.rule("RS-44", "RS-47", "RS-51")
async def test_what_waits_is_what_no_row_in_force_stands_for(database: Database) -> None:
    def look(c: sa.Connection) -> None:
        chat, seqs = chat_of(c, 92, "telegram:main:1")
        other, _ = chat_of(c, 5, "telegram:main:2")
        merged = rows_for(c, chat, seqs[:80])

        def found(which: Callable[..., list[uncovered.Stamp]], **bounds: int) -> list[int]:
            return [each.seq for each in which(c, chat, ROLLING, **bounds)]

        assert found(uncovered.waiting) == found(uncovered.unsaid) == seqs[80:]
        assert found(uncovered.waiting, after=seqs[84], last=seqs[87]) == seqs[85:88]
        assert [each.seq for each in uncovered.waiting(c, chat, (Kind.DAY,))] == seqs, "rows of other kinds do not count"
        assert len(uncovered.waiting(c, other, ROLLING)) == 5
        summary_rows.set_state(c, merged[:1], State.INACTIVE, NOW)
        assert found(uncovered.waiting) == found(uncovered.unsaid) == [*seqs[:40], *seqs[80:]]
        assert found(uncovered.waiting, after=seqs[38]) == [seqs[39], *seqs[80:]]
        summary_rows.set_state(c, merged[:1], State.ACTIVE, NOW)
        summary_rows.mark_changed(c, chat, seqs[0], seqs[0], forgotten=True)
        assert found(uncovered.waiting) == seqs[80:], "what is withheld is made anew by itself"
        assert found(uncovered.unsaid) == [*seqs[:40], *seqs[80:]]

    await database.write(look)


@pytest.mark.rule("RS-43", "RS-193")
async def test_a_long_chat_costs_no_look_at_each_of_its_messages(sqlite: Database) -> None:
    many = 4_000

    def look(c: sa.Connection) -> None:
        chat, seqs = chat_of(c, many, "telegram:main:1")
        rows_for(c, chat, seqs[:-LEFT])
        whole = steps(c, lambda: uncovered.waiting(c, chat, ROLLING))
        tail = steps(c, lambda: uncovered.waiting(c, chat, ROLLING, after=seqs[-2 * LEFT]))
        assert whole < many * 40 / 100, f"{whole * 100 / many} instructions for each message"
        assert tail < 60, "behind the edge of the window only what is there is looked at"

    await sqlite.write(look)
