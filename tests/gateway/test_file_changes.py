"""Changes that wait for a person's yes, because text of others was read before they were thought of (WD-105)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.file_changes import ChangeStale, NoSuchChange
from memory.database import Database
from memory.lines import line_hash
from memory.proposed_changes import KEPT, ProposedChange
from memory.provenance import Origin, changes_of
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.memory_desk import Desk, desk, scope, use

ANNA = scope("people/p-aaaaaaaaab")


@pytest.fixture
async def house(database: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(database, clock, tmp_path) as house:
        await house.person()
        await house.person(ANNA.id, scope=str(ANNA))
        yield house


async def proposed(house: Desk, path: str = "MEMORY.md", **call: str) -> ProposedChange:
    """One change that waits, asked for in a turn that read a forwarded message."""
    tools = await house.tools(foreign=True)
    name = "file_write" if "text" in call else "file_edit"
    answer = await use(tools[name], path=path, **call)
    assert answer.startswith("Not written yet"), answer
    return next(change for change in await house.changes.waiting(ROOT) if change.id in answer)


@pytest.mark.rule("WD-105")
@pytest.mark.parametrize("line", ["Ada moved to Lyon", "アダはリヨンへ引っ越した", "阿达搬到了里昂"])
async def test_after_text_of_others_a_change_waits_and_shows_the_exact_lines(house: Desk, line: str) -> None:
    house.put("MEMORY.md", "# Memory\n\n- Ada lives in Berlin\n")
    tools = await house.tools(foreign=True)
    answer = await use(tools["file_edit"], path="MEMORY.md", old="Ada lives in Berlin", new=line)
    (change,) = await house.changes.waiting(ROOT)
    assert f"- taken out: - Ada lives in Berlin\n- added: - {line}" in answer
    assert f"/memory apply {change.id}" in answer
    assert (change.removed, change.added) == (("- Ada lives in Berlin",), (f"- {line}",))
    assert house.text("MEMORY.md") == "# Memory\n\n- Ada lives in Berlin\n"
    assert house.written == []


@pytest.mark.rule("WD-105")
async def test_each_of_the_standing_files_waits_and_days_and_pages_do_not(house: Desk) -> None:
    tools = await house.tools(foreign=True)
    for path in ("MEMORY.md", "user.md", "system.md"):
        assert (await use(tools["file_edit"], path=path, new="x")).startswith("Not written yet")
    for path in ("memory/2026-03-08.md", "knowledge/x.md"):
        assert (await use(tools["file_edit"], path=path, new="x")).startswith("Written")
    assert sorted(change.path for change in await house.changes.waiting(ROOT)) == ["MEMORY.md", "system.md", "user.md"]
    rows = await house.lines("knowledge/x.md")
    assert [row.origin for row in rows.values()] == [Origin.MIXED]


@pytest.mark.rule("WD-105")
async def test_a_yes_makes_the_change_once_and_the_line_is_the_persons(house: Desk) -> None:
    change = await proposed(house, new="moved to Lyon")
    await house.changes.accept(ROOT, change.id)
    assert house.text("MEMORY.md") == "- moved to Lyon\n"
    row = (await house.lines("MEMORY.md"))[line_hash("moved to Lyon")]
    assert (row.origin, row.author, row.sources, row.run_id) == (Origin.PERSON, "tool", change.sources, change.run_id)
    recorded = await house.db.read(lambda connection: changes_of(connection, "root"))
    assert [(each.cause, each.cause_id) for each in recorded] == [("accepted", change.id)]
    with pytest.raises(NoSuchChange):
        await house.changes.accept(ROOT, change.id)
    assert house.text("MEMORY.md") == "- moved to Lyon\n"


@pytest.mark.rule("WD-105")
async def test_two_yeses_at_once_write_the_line_once(house: Desk) -> None:
    change = await proposed(house, new="moved to Lyon")
    await asyncio.gather(*(house.changes.accept(ROOT, change.id) for _ in range(3)), return_exceptions=True)
    assert house.text("MEMORY.md").count("moved to Lyon") == 1


@pytest.mark.rule("WD-105")
async def test_a_no_drops_the_change(house: Desk) -> None:
    change = await proposed(house, new="moved to Lyon")
    assert (await house.changes.discard(ROOT, change.id)).added == ("- moved to Lyon",)
    with pytest.raises(NoSuchChange):
        await house.changes.accept(ROOT, change.id)
    with pytest.raises(NoSuchChange):
        await house.changes.discard(ROOT, change.id)
    assert house.text("MEMORY.md") == ""


@pytest.mark.rule("WD-105", "WD-10")
async def test_nobody_decides_on_a_change_of_another_scope(house: Desk) -> None:
    change = await proposed(house, new="moved to Lyon")
    assert await house.changes.waiting(ANNA) == ()
    with pytest.raises(NoSuchChange):
        await house.changes.accept(ANNA, change.id)
    with pytest.raises(NoSuchChange):
        await house.changes.discard(ANNA, change.id)
    assert await house.changes.waiting(ROOT) == (change,)
    assert house.text("MEMORY.md", ANNA) == ""


@pytest.mark.rule("WD-105", "WD-17")
async def test_a_passage_is_sought_again_in_a_file_that_was_edited_meanwhile(house: Desk) -> None:
    house.put("MEMORY.md", "- Ada lives in Berlin\n- likes tea\n")
    change = await proposed(house, old="Ada lives in Berlin", new="Ada lives in Lyon")
    house.put("MEMORY.md", "# By hand\n\n- Ada lives in Berlin\n- likes tea\n- 猫が好き\n")
    await house.changes.accept(ROOT, change.id)
    assert house.text("MEMORY.md") == "# By hand\n\n- Ada lives in Lyon\n- likes tea\n- 猫が好き\n"


@pytest.mark.rule("WD-105", "WD-17")
async def test_a_change_that_fits_no_more_writes_nothing_and_goes_on_waiting(house: Desk) -> None:
    house.put("MEMORY.md", "- Ada lives in Berlin\n")
    passage = await proposed(house, old="Ada lives in Berlin", new="Ada lives in Lyon")
    whole = await proposed(house, text="- nothing else\n")
    house.put("MEMORY.md", "- 手で書いた\n")
    for change in (passage, whole):
        with pytest.raises(ChangeStale):
            await house.changes.accept(ROOT, change.id)
    assert house.text("MEMORY.md") == "- 手で書いた\n"
    assert len(await house.changes.waiting(ROOT)) == 2


@pytest.mark.rule("WD-105")
async def test_the_same_change_is_kept_once_and_for_thirty_days(house: Desk, clock: FakeClock) -> None:
    change = await proposed(house, new="moved to Lyon")
    assert (await proposed(house, new="moved to Lyon")).id == change.id
    clock.advance(KEPT)
    assert await house.changes.waiting(ROOT) == ()
    with pytest.raises(NoSuchChange):
        await house.changes.accept(ROOT, change.id)
