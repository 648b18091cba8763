"""Ranges of the log: each message in at most one, and what changed in one makes it stale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from memory import blocks, conversations, coverage, message_changes
from memory.coverage import Covered, runs, within
from memory.database import Database
from memory.file_schema import coverage as table

NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.rule("WD-50")
@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_runs_hold_all_that_is_wanted_and_meet_nothing_taken(wanted: set[int], taken: set[int]) -> None:
    wanted -= taken
    found = runs(sorted(wanted), [(seq, seq) for seq in taken])
    assert all(within(seq, found) for seq in wanted)
    assert not any(within(seq, found) for seq in taken)
    assert found == sorted(found)
    assert all(first <= last for first, last in found)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert not taken or len(found) <= len(taken) + 1


@pytest.mark.rule("WD-50")
def test_runs_are_as_few_as_the_taken_ones_allow() -> None:
    assert runs([1, 2, 9, 12], []) == [(1, 12)]
    assert runs([1, 2, 9, 12], [(4, 7)]) == [(1, 2), (9, 12)]
    assert runs([], [(1, 2)]) == []


async def chat(database: Database) -> str:
    return await database.write(
        lambda c: conversations.create_conversation(c, now=NOW, key="web::1", channel="web", account="", kind="web")
    )


async def say(database: Database, of: str, text: str, **more: Any) -> conversations.Message:
    values: dict[str, Any] = {"role": "user", "scope": "root", "now": NOW, **more}
    return await database.write(lambda c: conversations.add_message(c, conversation_id=of, text=text, **values))


def row(of: str, first: int, last: int, **more: Any) -> Covered:
    values: dict[str, Any] = {"scope": "root", "local_date": "2026-03-08", "section": "summary", "run_id": "7", "created_at": NOW, **more}
    return Covered(conversation_id=of, first_seq=first, last_seq=last, **values)


@pytest.mark.rule("WD-49", "WD-50", "WD-52")
async def test_what_is_covered_waits_no_longer(database: Database) -> None:
    of = await chat(database)
    said = [await say(database, of, word, attachments=[{"name": "plan.pdf", "kind": "file"}]) for word in "abc"]
    await say(database, of, "d", scope="")
    assert [talk.text for talk in await database.read(lambda c: coverage.uncovered(c, "root"))] == ["a", "b", "c"]
    assert (await database.read(coverage.waiting))[0].first_seq == said[0].seq
    await database.write(lambda c: coverage.add(c, [row(of, said[0].seq, said[1].seq)]))
    left = await database.read(lambda c: coverage.uncovered(c, "root"))
    assert [(talk.text, talk.files) for talk in left] == [("c", ("plan.pdf",))]
    waits = await database.read(coverage.waiting)
    assert [(each.scope, each.first_seq) for each in waits] == [("root", said[2].seq)]
    assert await database.read(lambda c: coverage.waiting(c, said[2].seq)) == []
    await database.write(lambda c: conversations.change(c, of, deleted_at=NOW))
    assert await database.read(coverage.waiting) == []


@pytest.mark.rule("WD-59")
async def test_an_edit_marks_its_stretch_and_no_other(database: Database) -> None:
    of = await chat(database)
    said = [await say(database, of, word) for word in "abcd"]
    await database.write(lambda c: coverage.add(c, [row(of, said[0].seq, said[1].seq), row(of, said[2].seq, said[3].seq)]))

    def edit(c: sa.Connection) -> int:
        message_changes.correct(c, said[2], "C", NOW + timedelta(minutes=1))
        return coverage.mark_stale(c, of, said[2].seq, said[2].seq)

    assert await database.write(edit) == 1
    (stale,) = await database.read(lambda c: coverage.stale(c, "root"))
    assert stale.range == (said[2].seq, said[3].seq)
    assert await database.read(lambda c: coverage.changed_in(c, stale)) == {said[2].id}
    assert await database.read(coverage.stale_scopes) == {"root"}
    await database.write(lambda c: coverage.made_good(c, [stale.id], NOW + timedelta(seconds=30)))
    assert await database.read(coverage.stale_scopes) == {"root"}, "it was edited after that reading"
    await database.write(lambda c: coverage.made_good(c, [stale.id], NOW + timedelta(minutes=2)))
    assert await database.read(coverage.stale_scopes) == set()


@pytest.mark.rule("WD-59")
async def test_a_stretch_with_a_message_edited_since_it_was_read_is_stale_from_the_start(database: Database) -> None:
    of = await chat(database)
    said = await say(database, of, "a")

    def work(c: sa.Connection) -> None:
        message_changes.correct(c, said, "A", NOW + timedelta(minutes=1))
        coverage.add(c, [row(of, said.seq, said.seq)])

    await database.write(work)
    assert await database.read(lambda c: list(c.execute(sa.select(table.c.stale)).scalars())) == [True]


@pytest.mark.rule("WD-43", "WD-47")
async def test_only_blocks_before_the_edge_stand_in_the_context(database: Database) -> None:
    of = await chat(database)

    def work(c: sa.Connection) -> None:
        blocks.put_extract(c, of, 1, 4, "old", NOW)
        blocks.put_extract(c, of, 5, 9, "new", NOW)
        conversations.move_edge(c, of, 4)

    await database.write(work)
    assert await database.read(lambda c: blocks.standing(c, of).text) == f"{blocks.HEAD}\n- old"
    await database.write(lambda c: conversations.move_edge(c, of, 9))
    assert await database.read(lambda c: blocks.standing(c, of).text) == f"{blocks.HEAD}\n- old\n- new"
    assert await database.write(lambda c: blocks.become_summary(c, of, 1, 9, "merged", NOW))
    assert not await database.write(lambda c: blocks.become_summary(c, of, 1, 99, "of a block that was dropped", NOW))
    assert await database.read(lambda c: blocks.standing(c, of).text) == f"{blocks.HEAD}\n- old\n- merged", "an extract waits for a job of its own"
