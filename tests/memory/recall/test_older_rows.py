"""Summaries as they stood before a message was said (RS-76)."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from memory import blocks, conversations
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import ROLLING, Kind
from memory.recall.older_rows import older
from memory.recall.summary_rows import NewSummary
from tests.memory.recall.talks import START, Talks


@pytest.mark.rule("RS-76", "RS-45")
@pytest.mark.parametrize(("before", "told"), [(99, ["whole"]), (20, ["1-5", "6-10", "11-15"]), (11, ["1-5", "6-10"]), (8, ["1-5"]), (3, [])])
async def test_a_row_that_tells_too_much_gives_way_to_what_it_was_made_of(database: Database, before: int, told: list[str]) -> None:
    talks = Talks(database)
    of = await talks.chat()
    first = (await talks.say(of, *(f"line {n}" for n in range(20))))[0].seq

    def work(c: sa.Connection) -> list[str]:
        ids: list[int] = []
        for begin in range(1, 20, 5):
            seqs = range(first + begin - 1, first + begin + 4)
            new = NewSummary(conversation_id=of, kind=Kind.RECENT, text=f"{begin}-{begin + 4}", sources=list(seqs))
            ids.append(summary_rows.add(c, new, START))
        every = list(range(first, first + 20))
        summary_rows.add(c, NewSummary(conversation_id=of, kind=Kind.CONSOLIDATED, text="whole", sources=every, inputs=ids), START)
        return [row.text for row in older(c, summary_rows.of_chat(c, of, kinds=ROLLING), first + before - 1)]

    assert await database.write(work) == told


@pytest.mark.rule("RS-76")
async def test_blocks_are_told_as_far_as_they_are_older(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, "a", "b", "c", "d")

    def work(c: sa.Connection) -> str:
        for begin in (0, 2):
            blocks.put_extract(c, of, said[begin].seq, said[begin + 1].seq, f"block {begin}", START)
        conversations.move_edge(c, of, said[3].seq)
        assert "block 2" in blocks.standing(c, of).text
        return blocks.standing(c, of, before=said[3].seq).text

    assert await database.write(work) == f"{blocks.HEAD}\n- block 0"
