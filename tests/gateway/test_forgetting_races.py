"""What is forgotten while something else is under way: a night between question and yes, a summary or a dream that a model is just writing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, Until
from gateway.jobs.table import Job, enqueue
from gateway.summaries.plan import DAILY
from memory import conversations
from memory.columns import metadata
from memory.database import Database
from memory.layout import CURATED
from memory.lines import line_hash
from memory.provenance import LineRow, Origin
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.dreams import Dreamer, answer, entry, promote, shown
from tests.gateway.nights import OWNER, each_said, utc
from tests.patience import patience

pytestmark = pytest.mark.rule("WD-92")
NIGHT = "2026-03-08"


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Dreamer]:
    clock.now = utc("2026-03-08T22:00")
    made = Dreamer(database, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


async def forget(house: Dreamer, text: str, *, messages: bool = False) -> None:
    asked = await house.forgetting.find(ROOT, text, person=OWNER)
    assert asked is not None
    await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER, messages=messages)


async def words(house: Dreamer, folder: Path) -> str:
    """Every text in every file and every row, the raw messages apart."""
    texts = [path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file() and not path.name.startswith("yumegate.db")]
    for table in metadata.sorted_tables:
        if table.name != "messages":
            texts += [json.dumps(row, ensure_ascii=False, default=str) for row in await house.values(table)]
    return "\n".join(texts)


@asynccontextmanager
async def being_written(house: Dreamer, kind: str) -> AsyncGenerator[None]:
    """While the first model call of the job of this kind goes on."""
    go, asked = asyncio.Event(), asyncio.Event()
    usual = house.script

    def slowly(request: ModelRequest) -> Reply:
        asked.set()
        said = usual(request)
        assert isinstance(said, str)
        return [Until(go), Say(said)]

    house.script = slowly
    async with asyncio.TaskGroup() as group, asyncio.timeout(patience(20)):
        group.create_task(house.run(kind))
        await asked.wait()
        house.script = usual
        yield
        go.set()


async def test_what_a_night_made_of_it_between_the_question_and_the_yes_goes_too(house: Dreamer, tmp_path: Path) -> None:
    await house.notes(NIGHT, "Loves marzipan", "Plays chess")
    asked = await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    assert asked is not None
    await house.dream(NIGHT)
    house.write(CURATED, house.memory() + "My own marzipan line\n")
    await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER)
    assert house.memory_lines() == ["Plays chess", "My own marzipan line"], "a person's line that was not shown stays"
    house.write(CURATED, "- Plays chess\n")
    await forget(house, "marzipan")
    assert "marzipan" not in (await words(house, tmp_path)).casefold()


async def test_a_line_that_says_it_among_other_things_goes_with_a_note_named_by_its_id(house: Dreamer, tmp_path: Path) -> None:
    await house.notes(NIGHT, "Loves marzipan", "Plays chess")

    def both(request: ModelRequest) -> str:
        seen = shown(request)
        return answer(entry("Loves marzipan, plays chess", evidence=[seen.note("marzipan"), seen.note("chess")]))

    house.script = both
    await house.dream(NIGHT)
    await forget(house, f"#{line_hash('Loves marzipan')[:8]}")
    assert house.memory_lines() == []
    assert house.bullets(NIGHT) == ["Plays chess"]
    assert "marzipan" not in (await words(house, tmp_path)).casefold()


@pytest.mark.parametrize("promotes", [True, False])
async def test_a_dream_that_was_being_written_does_not_bring_it(house: Dreamer, tmp_path: Path, promotes: bool) -> None:
    for number, text in enumerate(("Loves marzipan", "Plays chess")):
        await house.notes(NIGHT, text, origin=Origin.PERSON if promotes else Origin.MIXED, sources=[f"m-{number}"])
    job = Job(kind="dream", key=f"root:{NIGHT}", scope="root", local_date=NIGHT, payload={"date": NIGHT, "zone": "UTC"})
    await house.db.write(lambda c: enqueue(c, job, now=house.clock()))
    house.script = promote
    async with being_written(house, "dream"):
        await forget(house, "marzipan")
    assert house.memory_lines() == (["Plays chess"] if promotes else [])
    assert "marzipan" not in (await words(house, tmp_path)).casefold()
    assert house.calls == 2


@pytest.mark.rule("WD-92", "WD-59")
@pytest.mark.parametrize("with_messages", [False, True])
@pytest.mark.parametrize("kind", [DAILY, "trim-summary"])
async def test_a_summary_that_was_being_written_does_not_bring_it(house: Dreamer, tmp_path: Path, kind: str, with_messages: bool) -> None:
    chat = await house.chat(title="Sweets")
    first = await house.says(chat, "I love marzipan")
    last = await house.says(chat, "I play chess")
    if kind == DAILY:
        job = Job(kind=DAILY, key=f"root:{NIGHT}", scope="root", local_date=NIGHT, payload={"date": NIGHT, "zone": "UTC"})
        await house.db.write(lambda c: enqueue(c, job, now=house.clock()))
    else:
        await house.leaves(chat, first.seq, last.seq)
    house.script = each_said
    async with being_written(house, kind):
        await forget(house, "marzipan", messages=with_messages)
    await house.run()
    assert house.bullets(NIGHT) == ["Said: I play chess"]
    assert set((await house.times_covered()).values()) == {1}
    assert "marzipan" not in (await words(house, tmp_path)).casefold()


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ("python", "私はpythonが好き"), ("iphone", "他有iPhone手机"), ("12345678", "Telefon 12345678"), ("deadbeef", "Das Wort ist Deadbeef"),
        ("marzipan", "Loves mar\u00adzi\u200bpan"),
    ],
)  # fmt: skip
async def test_a_word_is_found_beside_any_script_also_when_it_looks_like_an_id(house: Dreamer, wish: str, line: str) -> None:
    row = LineRow(hash=line_hash(line), origin=Origin.PERSON, author="tool")
    await house.writer.change(ROOT, CURATED, lambda _text: f"- {line}\n- Drinks tea\n", cause="tool", row_of=lambda _entry: row)
    await forget(house, wish)
    assert house.memory_lines() == ["Drinks tea"]


async def test_an_older_question_about_it_that_nobody_answered_goes_too(house: Dreamer, tmp_path: Path) -> None:
    await house.notes(NIGHT, "Loves marzipan", "Plays chess")
    assert await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    await forget(house, "marzipan")
    assert "marzipan" not in (await words(house, tmp_path)).casefold()


async def test_headings_front_matter_and_the_name_of_a_chat_say_it_no_more(house: Dreamer, tmp_path: Path) -> None:
    """The chat's name stands above its lines in the day's file, where no line of memory is."""
    chat = await house.chat()
    await house.db.write(lambda c: conversations.change(c, chat, title="My marzipan secret", title_origin="words"))
    await house.says(chat, "I play chess")
    house.script = each_said
    house.clock.now = utc("2026-03-08T23:59:30")
    await house.look()
    await house.run(DAILY)
    house.write("knowledge/sweets.md", "---\ntitle: Marzipan\nlore: none\n---\n# Marzipan\n\n- It is sweet\n")
    assert "marzipan" in house.day(NIGHT)
    asked = await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    assert asked is not None
    assert {(match.store, match.text) for match in asked.matches if match.text} >= {
        ("title", "My marzipan secret"), ("knowledge", "# Marzipan"), ("knowledge", "title: Marzipan"),
    }  # fmt: skip
    await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER)
    assert "marzipan" not in (await words(house, tmp_path)).casefold()
    assert house.bullets(NIGHT) == ["Said: I play chess"]
    day = house.day(NIGHT)
    assert re.search("^### [0-9]{2}:[0-9]{2}$", day, re.MULTILINE)
    page = house.workspace.read(ROOT, "knowledge/sweets.md")
    assert page is not None
    assert page.content == "---\nlore: none\n---\n\n- It is sweet\n"
