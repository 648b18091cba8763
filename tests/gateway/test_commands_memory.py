"""`/memory`, `/knowledge`, `/summary`, `/tasks`: what they say of their scope, and that they never say anything of another (section 9)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import followups
from gateway.jobs.table import Job, JobRow, State, enqueue
from gateway.language import LANGUAGES, say
from gateway.tasks.desk import Wanted
from memory import conversations, proposal_store
from memory.database import Database
from memory.layout import CURATED
from memory.lines import line_hash
from memory.proposed_changes import Passage, ProposedChange
from memory.provenance import LineRow, Origin
from memory.schema import jobs, messages, outbox, spaces, turns
from memory.scope_switches import knowledge_of
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.command_house import MANAGERS, CommandHouse, command_house, person_id, scope_of_person
from tests.gateway.nights import each_said, utc

NIGHT = "2026-03-08"


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def both(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    """On both databases."""
    clock.now = utc("2026-03-08T20:00")
    async with command_house(database, tmp_path, clock) as made:
        yield made


# -- how it stands -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-7", "WD-55")
async def test_status_says_how_the_memory_stands(both: CommandHouse) -> None:
    await both.remembers("Lives in Kyoto", "Has a cat called Shiro")
    both.write(CURATED, both.memory() + "- Written by hand\n")
    await both.notes("2026-03-07", "Went to the sea")
    await both.indexing.prepare_scope(ROOT)
    said = await both.says("/memory status")
    lines = said.splitlines()
    assert lines[0] == "**Memory** · private (owner) · UTC"
    assert lines[1].startswith("- Curated: MEMORY.md 3 lines (1 yours) · ")
    assert "of 4,000 tokens" in lines[1]
    assert lines[2].startswith("- Daily: 1 file · last 2026-03-07 · next summary 23:5")
    assert lines[2].endswith("missing: none")
    assert lines[3] == "- Dream: none yet · nightly: on · proposals: 0"
    assert lines[4].startswith("- Index: 2 files, 2 chunks · keywords ok · vectors: off (no embedding model)")
    assert lines[5] == "- Jobs: 0 running · 0 waiting · 0 parked"


@pytest.mark.rule("WD-55", "WD-7", "WD-23")
async def test_status_names_missing_days_parked_jobs_left_out_lines_and_unreadable_files(house: CommandHouse, tmp_path: Path) -> None:
    house.clock.now = utc("2026-02-01T12:00")
    await house.talk("long ago", "yes")
    house.clock.now = utc("2026-03-08T20:00")
    job = Job(kind="trim-summary", key="x", scope="root")
    await house.do(lambda connection: enqueue(connection, job))
    await house.do(lambda connection: connection.execute(sa.update(jobs).values(state="parked")))
    (tmp_path / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    (tmp_path / "workspace" / "memory" / "2026-03-01.md").write_bytes(b"\xff\xfe\xff broken")
    house.write(CURATED, "".join(f"- fact {number} {'word ' * 60}\n" for number in range(90)))
    said = await house.says("/memory status")
    assert "missing: 2026-02-01" in said
    assert "1 parked" in said
    assert "Left alone: memory/2026-03-01.md:" in said
    assert "lines are found by search alone" in said


@pytest.mark.rule("WD-139")
async def test_status_names_lore_that_found_no_room(house: CommandHouse) -> None:
    house.write("knowledge/world.md", "---\nlore: always\n---\n" + "The old kingdom of rivers.\n" * 300)
    assert "found no room (1,000 tokens together): knowledge/world.md" in await house.says("/memory status")


@pytest.mark.parametrize(
    ("language", "words"),
    [("ja", ("記憶", "まとめ", "日々の記録", "夢", "索引", "ジョブ")), ("zh", ("记忆", "精选", "每日", "梦", "索引", "任务"))],
)
async def test_status_in_the_readers_language(house: CommandHouse, language: str, words: tuple[str, ...]) -> None:
    said = await house.says("/memory status", language=language)
    assert all(word in said for word in words), said


@pytest.mark.rule("WD-79")
async def test_status_says_when_the_model_cannot_dream(house: CommandHouse) -> None:
    await house.do(partial(enqueue, job=Job(kind="dream", key="root:x", scope="root", local_date=NIGHT)))
    await house.do(lambda connection: connection.execute(sa.update(jobs).values(state="done", result={"skipped": "model"})))
    assert "The built-in demo model cannot tend a memory." in await house.says("/memory status")


# -- whose -------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-115", "WD-10")
@pytest.mark.case("N13")
async def test_a_group_learns_nothing_of_a_private_memory_by_any_command(house: CommandHouse) -> None:
    """A planted secret, asked for from a group by everybody, the owner too, with every command and id there is."""
    await house.remembers("The safe code is tulip-seven")
    await house.notes("2026-03-08", "The safe code is tulip-seven")
    house.write("knowledge/safes/one.md", "The safe code is tulip-seven\n")
    house.write("memory/dreams/2026-03-08.md", "# Dream Diary: 2026-03-08\n\ntulip-seven\n")
    await house.indexing.prepare_scope(ROOT)
    candidate: dict[str, object] = {"text": "tulip-seven", "section": "", "row": _row_json("tulip-seven"), "replaces": []}
    later = house.clock() + timedelta(days=1)
    found = await house.do(lambda connection: proposal_store.propose(connection, "root", "candidate", candidate, now=house.clock(), expires_at=later))
    line = line_hash("The safe code is tulip-seven")[:8]
    await house.talk("hello", "hi", group=True, by="owen")
    asked = [
        "status", "search tulip", "search safe code", "diary", f"diary {NIGHT}", "dream show", f"dream show {found}", f"dream apply {found}",
        f"dream discard {found}", "undo", "why", f"why {line}", "forget tulip", f"forget {line}", "export", "dream",
    ]  # fmt: skip
    others = ["/summary", f"/summary {NIGHT}", "/knowledge", "/knowledge list", "/tasks", "/context", "/status", "/whoami"]
    lines = [*(f"/memory {each}" for each in asked), *others]
    for who in ("owen", "ada", "mia", "uma"):
        for each in lines:
            said = await house.says(each, by=who, group=True)
            assert "tulip-seven" not in said, f"{each} by {who}"
            assert "one.md" not in said
            assert "private (owner)" not in said
    await house.results()
    assert "tulip-seven" not in "".join(await house.notices(await house.chat_of(group=True)))
    assert [each.id for each in await house.open()] == [found], "nothing was decided from the group"
    assert house.memory_lines() == ["The safe code is tulip-seven"]


def _row_json(text: str) -> dict[str, object]:
    return {
        "hash": line_hash(text), "origin": "mixed", "author": "dream", "run_id": "", "sources": [], "evidence": [], "speakers": [],
        "local_date": "", "used_by": "",
    }  # fmt: skip


@pytest.mark.rule("WD-9")
async def test_each_person_has_the_own_memory_and_a_group_its_own(house: CommandHouse) -> None:
    await house.remembers("The owner likes tea")
    house.write(CURATED, "- Uma likes coffee\n", scope_of_person("uma"))
    await house.talk("hello", by="uma", group=True)
    space = await house.space()
    house.write(CURATED, "- The group likes cake\n", space)
    for scope in (ROOT, scope_of_person("uma"), space):
        await house.indexing.prepare_scope(scope)
    assert "tea" in await house.says("/memory search likes")
    uma = await house.says("/memory search likes", by="uma")
    assert ("coffee" in uma, "tea" in uma, "cake" in uma) == (True, False, False)
    group = await house.says("/memory search likes", group=True)
    assert ("cake" in group, "tea" in group, "coffee" in group) == (True, False, False)
    assert (await house.says("/memory status", group=True)).startswith("**Memory** · group · ")
    await house.do(lambda connection: connection.execute(sa.update(spaces).values(title="Gardeners")))
    assert (await house.says("/memory status", group=True)).startswith("**Memory** · group Gardeners · ")
    assert "the memory of the group Gardeners" in await house.says("/whoami", group=True)
    assert (await house.says("/memory status", by="uma")).startswith("**Memory** · private · ")


@pytest.mark.rule("WD-9")
@pytest.mark.parametrize("kind", ["challenge"])
async def test_a_challenge_chat_has_no_memory_and_says_so(house: CommandHouse, kind: str) -> None:
    await house.remembers("Likes tea")
    await house.talk("hello", "hi")
    chat = await house.chat_of()
    await house.do(lambda connection: conversations.change(connection, chat.id, kind=kind))
    for line in ("status", "search tea", "dream", "diary", "undo", "why", "forget tea", "export", "on", "off", "dream show"):
        assert await house.says(f"/memory {line}") == "In this chat nothing is read from memory and nothing is written to it."
    for line in ("/knowledge", "/summary", "/summary now"):
        assert (await house.says(line)).startswith("In this chat nothing is read")


@pytest.mark.rule("WD-51")
async def test_memory_off_means_nothing_is_read_written_or_summarised_here(both: CommandHouse) -> None:
    await both.remembers("Likes tea")
    await both.talk("before", "yes")
    said = await both.says("/memory off")
    assert "neither summarised nor kept" in said
    off = await both.talk("between us")
    assert off.scope == ""
    assert await both.says("/memory search tea") == "Memory is off in this chat. /memory on turns it on."
    assert "read what is remembered" in await both.says("/memory on")
    on = await both.talk("after")
    assert on.scope == "root"
    assert "tea" not in await both.says("/memory why abc")
    await both.says("/summary now")
    await both.results()
    everything = both.day(NIGHT)
    assert "between us" not in everything


# -- looking into it ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-102")
@pytest.mark.parametrize(("words", "fact"), [("cat", "Has a cat called Shiro"), ("シロ", "シロという猫を飼っている"), ("小白", "养了一只叫小白的猫")])
async def test_search_gives_path_line_and_date(house: CommandHouse, words: str, fact: str) -> None:
    await house.notes("2026-03-07", fact)
    await house.indexing.prepare_scope(ROOT)
    said = await house.says(f"/memory search {words}", language="en")
    assert said.splitlines()[0].startswith("- `memory/2026-03-07.md:")
    assert "· 2026-03-07: " in said
    assert fact in said
    assert said.splitlines()[-1] == "Only words were compared, not meaning."
    assert (
        await house.says("/memory search zebra", language="en") == "Nothing was found in the memory files. Saved memories stand apart: /memory list"
    )
    assert await house.says("/memory search") == "Write what to look for: /memory search TEXT"


@pytest.mark.rule("WD-91")
async def test_why_leads_from_a_line_to_what_was_said(house: CommandHouse) -> None:
    said = await house.talk("I moved to Kyoto", "Noted.")
    await house.notes("2026-03-08", "Moved to Kyoto", sources=[said.id])
    row = LineRow(hash=line_hash("Lives in Kyoto"), origin=Origin.PERSON, author="dream", evidence=(line_hash("Moved to Kyoto"),), sources=(said.id,))
    house.write(CURATED, "- Lives in Kyoto\n")
    await house.know(CURATED, row)
    answer = await house.says(f"/memory why {line_hash('Lives in Kyoto')[:8]}")
    parts = ("Lives in Kyoto", "Moved to Kyoto", "I moved to Kyoto", "MEMORY.md", "memory/2026-03-08.md", "from what was said")
    assert [part for part in parts if part not in answer] == []
    assert await house.says("/memory why 00000000") == "There is no line 00000000 in this memory."
    assert await house.says("/memory why") == "There is no answer here yet."


@pytest.mark.rule("WD-78")
async def test_a_diary_is_shown_by_date_or_the_newest(house: CommandHouse) -> None:
    assert await house.says("/memory diary") == "There is no diary of that day yet."
    for day, words in (("2026-03-06", "an older night"), ("2026-03-07", "a quiet night")):
        house.write(f"memory/dreams/{day}.md", f"# Dream Diary: {day}\n\n## 23:57\n\n{words}\n")
    assert "a quiet night" in await house.says("/memory diary")
    assert "an older night" in await house.says("/memory diary 2026-03-06")
    assert "a quiet night" in await house.says("/memory diary yesterday")
    assert "2026-03-08" in await house.says("/memory diary last week"), "says what it takes"


@pytest.mark.parametrize(
    ("line", "there"), [("/summary", False), ("/summary today", False), ("/summary yesterday", True), ("/summary 2026-03-07", True)]
)
async def test_a_days_record_is_shown(house: CommandHouse, line: str, there: bool) -> None:
    await house.notes("2026-03-07", "Went to the sea")
    said = await house.says(line)
    assert ("Went to the sea" in said) is there
    assert there or said == "Nothing stands in the notes of 2026-03-08 yet."


@pytest.mark.rule("WD-23")
async def test_a_record_or_a_diary_that_is_no_text_is_said_in_the_persons_language(house: CommandHouse, tmp_path: Path) -> None:
    for path, line in (("memory/2026-03-07.md", "/summary 2026-03-07"), ("memory/dreams/2026-03-07.md", "/memory diary 2026-03-07")):
        house.write(path, "text")
        (tmp_path / "workspace" / path).write_bytes(b"\xff\xfe")
        for language in LANGUAGES:
            assert await house.says(line, language=language) == say(language, "error_file_unreadable")


async def test_knowledge_is_counted_listed_and_switched_for_its_scope(both: CommandHouse) -> None:
    for number in range(14):
        both.write(f"knowledge/plants/{number:02}.md", "A plant.\n")
    both.write("knowledge/rivers/one.md", "A river.\n")
    said = await both.says("/knowledge")
    assert said.startswith("Knowledge pages are on here: 15 pages, ")
    assert "- plants: 14" in said
    tree = (await both.says("/knowledge tree")).splitlines()
    assert tree[:2] == ["plants/", "- 00.md"]
    assert tree[13:] == ["- and 2 more", "rivers/", "- one.md"]
    assert await both.says("/knowledge off") == "Knowledge pages are not used here any more. They stay where they are."
    assert await both.do(partial(knowledge_of, scope="root")) is False
    assert (await both.says("/knowledge")).startswith("Knowledge pages are off here")
    await both.indexing.prepare_scope(ROOT)
    assert await both.says("/memory search river") == "Nothing was found in the memory files. Saved memories stand apart: /memory list"
    await both.says("/knowledge on")
    assert "rivers/one.md" in await both.says("/memory search river")
    assert await both.do(partial(knowledge_of, scope=str(scope_of_person("uma")))) is None, "others decide for themselves"


# -- dreams ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-63", "WD-78")
async def test_a_dream_by_hand_is_accepted_at_once_and_its_diary_follows(both: CommandHouse) -> None:
    await both.talk("hello", "hi")
    await both.notes("2026-03-07", "Moved to Kyoto")
    assert await both.says("/memory dream 5") == "The dream over the last 5 days has started. Its diary follows here."
    assert both.woken == 1
    assert await both.do(partial(followups.awaited, scope="root", what="dream"))
    assert (await both.says("/memory dream")).startswith("A dream of this memory has been running for ")
    await both.results()
    told = (await both.notices(await both.chat_of()))[-1]
    assert told.startswith("The memory was tended: +1 ~0 −0.")
    assert "A quiet night." in told
    assert both.memory_lines() == ["Moved to Kyoto"]
    assert not await both.do(partial(followups.awaited, scope="root", what="dream"))
    await both.says("/memory dream")
    await both.results()
    assert (await both.notices(await both.chat_of()))[-1] == "Nothing new to dream about."


@pytest.mark.rule("WD-63")
@pytest.mark.parametrize(
    ("words", "said", "payload"),
    [
        ("", "last 3 days", (3, False)), ("40", "days it looks at: 30 (from 1 to 30 are possible)", (30, False)),
        ("0", "days it looks at: 1 ", (1, False)),
        ("-2", "days it looks at: 1 ", (1, False)), ("2 force", "last 2 days", (2, True)), ("force", "last 3 days", (3, True)),
        ("tomorrow", "Write /memory dream", None), ("3 4", "Write /memory dream", None),
    ],
)  # fmt: skip
async def test_days_are_clamped_and_the_answer_says_so(house: CommandHouse, words: str, said: str, payload: tuple[int, bool] | None) -> None:
    assert said in await house.says(f"/memory dream {words}")
    keys = await house.job_keys("dream")
    rows = [await house.job("dream", key) for key in keys]
    assert [(row.job.payload["days"], row.job.payload["force"]) for row in rows] == ([payload] if payload else [])


@pytest.mark.rule("WD-64")
async def test_people_have_so_many_dreams_a_day(house: CommandHouse) -> None:
    for _ in range(3):
        assert "has started" in await house.says("/memory dream", by="uma")
        await house.results()
    assert await house.says("/memory dream", by="uma") == "This memory has had its 3 dreams by hand for today."
    assert "has started" in await house.says("/memory dream", by="owen")


@pytest.mark.rule("WD-79")
@pytest.mark.parametrize(("language", "said"), [("en", "The built-in demo model cannot"), ("ja", "内蔵のデモモデル"), ("zh", "内置的演示模型")])
async def test_a_model_that_cannot_dream_is_said_at_once_and_no_dream_begins(house: CommandHouse, language: str, said: str) -> None:
    house.config = type(house.config).model_validate({"timezone": "UTC", "model": {"provider": "demo"}})
    woken = house.woken
    assert (await house.says("/memory dream", language=language)).startswith(said)
    assert (house.woken, await house.values(jobs)) == (woken, [])


@pytest.mark.rule("WD-81", "WD-68")
async def test_what_waits_is_shown_taken_and_turned_down(house: CommandHouse) -> None:
    await house.notes("2026-03-07", "The bank closes on Friday", origin=Origin.MIXED)
    await house.dream("2026-03-07")
    (waiting,) = await house.open()
    shown = await house.says("/memory dream show")
    assert f"`{waiting.id}` A line for MEMORY.md that rests on other people's words:" in shown
    assert "+ The bank closes on Friday" in shown
    assert "+ The bank closes on Friday" in await house.says("/memory dream apply")
    assert house.memory_lines() == ["The bank closes on Friday"]
    assert await house.says("/memory dream apply") == "Nothing waits for your yes."
    assert await house.says(f"/memory dream discard {waiting.id}") == f"Nothing of the id {waiting.id} waits here."
    for verb in ("show", "apply", "discard"):
        assert len(await house.says(f"/memory dream {verb} {'x' * 50_000}")) < 200  # an answer, not the question again in twelve parts


@pytest.mark.rule("WD-105")
async def test_a_tools_change_is_taken_or_dropped_by_the_command_that_the_model_names(house: CommandHouse) -> None:
    ids: list[str] = []
    for fact in ("Likes tea", "Likes coffee"):
        about = ProposedChange(person_id=person_id("owen"))
        made = await house.changes.propose(ROOT, CURATED, lambda before, fact=fact: f"{before}- {fact}\n", Passage(old="", new=f"- {fact}"), about)
        assert made is not None
        ids.append(made.id)
    assert (await house.says("/memory apply")).startswith("Several things wait: ")
    assert "+ Likes tea" in await house.says(f"/memory apply {ids[0]}")
    assert await house.says(f"/memory discard {ids[1]}") == f"`{ids[1]}` is dropped."
    assert house.memory_lines() == ["Likes tea"]
    assert await house.says("/memory dream show") == "Nothing waits for your yes."


@pytest.mark.rule("WD-89")
async def test_undo_says_line_by_line_what_was_reversed(house: CommandHouse) -> None:
    assert await house.says("/memory undo") == "There is nothing to take back."
    await house.remembers("Lives in Bern")
    await house.notes("2026-03-07", "Moved to Kyoto")
    await house.dream("2026-03-07")
    assert "Moved to Kyoto" in house.memory_lines()
    said = await house.says("/memory undo")
    assert said.splitlines() == ["The last change of MEMORY.md is taken back:", "```", "− Moved to Kyoto", "```"]
    assert house.memory_lines() == ["Lives in Bern"]


# -- forgetting --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-92")
@pytest.mark.case("N33")
@pytest.mark.parametrize("command", ["/memory forget", "/forget"])
async def test_forgetting_asks_first_and_leaves_no_word_of_it_in_the_log_either(both: CommandHouse, command: str) -> None:
    await both.remembers("Is afraid of spiders", "Likes tea")
    listed = await both.says(f"{command} spiders")
    assert listed.startswith("This would be forgotten (1):")
    assert "Is afraid of spiders" in listed
    assert len(both.memory_lines()) == 2, "nothing is gone before the yes"
    before, asks = next(pair for pair in pairwise(listed.splitlines()) if "write within ten minutes" in pair[1])
    assert before == "", "or Markdown takes it for the end of the last match"
    confirm = asks.rpartition(": ")[2]
    assert confirm.startswith(f"{command} confirm ")
    assert (await both.says(confirm)).startswith("Forgotten: 1 line of MEMORY.md")
    assert both.memory_lines() == ["Likes tea"]
    assert await both.says(confirm) == "That question is no longer open. Please begin anew."
    texts = await both.do(lambda connection: list(connection.execute(sa.select(messages.c.text)).scalars()))
    assert not [text for text in texts if "spiders" in text], "the question and the list said it too"


@pytest.mark.rule("WD-92")
@pytest.mark.parametrize(
    ("language", "owner", "person", "group"),
    [
        ("en", "Where: in your memory, the owner's, with every chat that shares it.", "Where: in your own memory, with all your private chats.",
         "Where: in this group's memory with its chats; no private memory is touched."),
        ("ja", "範囲: オーナーであるあなたの記憶と、それを使うすべてのチャット。", "範囲: あなた自身の記憶と、あなたの個人チャットすべて。",
         "範囲: このグループの記憶とそのチャット。個人の記憶には触れません。"),
        ("zh", "范围：你（所有者）的记忆，以及共用它的所有聊天。", "范围：你自己的记忆，以及你的所有私聊。",
         "范围：本群的记忆及其聊天；不涉及任何私人记忆。"),
    ],
)  # fmt: skip
async def test_forgetting_says_whose_memory_it_works_on(house: CommandHouse, language: str, owner: str, person: str, group: str) -> None:
    await house.remembers("Is afraid of spiders")
    listed = await house.says("/memory forget spiders", language=language)
    assert listed.splitlines()[1] == owner
    confirm = next(line for line in listed.splitlines() if "/memory forget confirm" in line)
    code = confirm[confirm.index("/memory forget confirm") :].split()[3]
    assert (await house.says(f"/memory forget confirm {code}", language=language)).splitlines()[1] == owner
    assert (await house.says("/memory forget spiders", by="uma", language=language)).splitlines()[1] == person
    assert (await house.says("/memory forget spiders", by="uma", group=True, language=language)).splitlines()[1] == group


@pytest.mark.rule("WD-92")
async def test_the_question_what_to_forget_is_no_find_itself(house: CommandHouse) -> None:
    nothing = "Nothing in this memory fits that.\nWhere: in your memory, the owner's, with every chat that shares it."
    assert await house.says("/memory forget marmalade") == nothing
    assert await house.says("/memory forget marmalade") == nothing, "nor is the first one"
    await house.talk("I like marmalade", "Good.")
    said = await house.says("/memory forget marmalade")
    assert said.startswith("No note says that, only what was written in the chats: 1."), said
    assert "write within ten minutes" not in said, "there is no note to forget"


@pytest.mark.rule("WD-92")
@pytest.mark.parametrize(
    ("language", "told"), [("en", "- older texts of MEMORY.md"), ("ja", "- MEMORY.md の以前の版"), ("zh", "- MEMORY.md 的旧版本")]
)
async def test_what_goes_with_the_lines_is_named_where_it_is_not_quoted(house: CommandHouse, language: str, told: str) -> None:
    await house.remembers("Is afraid of spiders")
    text = await house.files.read(lambda workspace: workspace.read(ROOT, CURATED))
    assert text is not None
    await house.files.write(ROOT, lambda workspace: workspace.replace(ROOT, CURATED, f"{text.content}- Likes tea\n", based_on=text.hash))
    assert told in (await house.says("/memory forget spiders", language=language)).splitlines()


@pytest.mark.rule("WD-92")
async def test_a_yes_after_ten_minutes_forgets_nothing(house: CommandHouse) -> None:
    await house.remembers("Likes tea")
    listed = await house.says("/forget tea")
    confirm = next(line for line in listed.splitlines() if "write within ten minutes" in line).rpartition(": ")[2]
    house.clock.advance(minutes=11)
    assert await house.says(confirm) == "That question is no longer open. Please begin anew."
    assert house.memory_lines() == ["Likes tea"]


@pytest.mark.rule("WD-92")
async def test_the_list_that_was_sent_is_emptied_too(house: CommandHouse) -> None:
    await house.remembers("Is afraid of spiders")
    listed = await house.says("/forget spiders")
    await house.do(lambda connection: connection.execute(sa.update(outbox).values(state="sent")))
    confirm = next(line for line in listed.splitlines() if "write within ten minutes" in line).rpartition(": ")[2]
    await house.says(confirm)
    parts = await house.do(lambda connection: list(connection.execute(sa.select(outbox.c.part)).scalars()))
    assert not [part for part in parts if "spiders" in part["text"]]


@pytest.mark.rule("WD-92", "WD-115")
async def test_in_a_group_a_user_reaches_only_what_rests_on_own_messages(house: CommandHouse) -> None:
    mine = await house.talk("I am allergic to nuts", by="uma", group=True)
    theirs = await house.talk("I am allergic to eggs", by="ada", group=True)
    space = await house.space()
    await house.notes(NIGHT, "Uma is allergic to nuts", scope=space, sources=[mine.id], by=person_id("uma"))
    await house.notes(NIGHT, "Ada is allergic to eggs", scope=space, sources=[theirs.id], by=person_id("ada"))
    own = await house.says("/memory forget allergic", by="uma", group=True)
    assert ("nuts" in own, "eggs" in own) == (True, False)
    assert (await house.says("/forget eggs", by="uma", group=True)).startswith("Nothing that rests on your own messages fits that.\n")
    assert next(iter(MANAGERS)) == "mia"
    every = await house.says("/memory forget allergic", by="mia", group=True)
    assert ("nuts" in every, "eggs" in every) == (True, True)


# -- work in the background --------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-97")
async def test_an_export_is_an_archive_of_the_own_scope_that_follows_with_a_link(both: CommandHouse) -> None:
    await both.remembers("Likes tea")
    await both.notes("2026-03-07", "Went to the sea")
    both.write(CURATED, "- Uma's own\n", scope_of_person("uma"))
    assert await both.says("/memory export") == "I am packing your memory. The archive follows here."
    await both.results()
    told = (await both.notices(await both.chat_of()))[-1]
    assert told.startswith("Your memory with 2 files: [memory-2026-03-08.zip](http://127.0.0.1:8420/api/attachments/")
    file_id = told.rpartition("/")[2].partition(")")[0]
    stored = await both.attachments.find(file_id, person_id("owen"))
    assert stored is not None
    assert await both.attachments.find(file_id, person_id("uma")) is None
    with zipfile.ZipFile(io.BytesIO(both.attachments.path_of(stored).read_bytes())) as archive:
        names = archive.namelist()
        rows = [json.loads(line) for line in archive.read("rows/file_lines.jsonl").splitlines()]
        everything = b"".join(archive.read(name) for name in names)
    assert {"files/MEMORY.md", "files/memory/2026-03-07.md", "rows/file_lines.jsonl"} <= set(names)
    assert {row["path"] for row in rows} == {"MEMORY.md", "memory/2026-03-07.md"}
    assert b"Uma" not in everything
    sent = await both.do(lambda connection: list(connection.execute(sa.select(outbox.c.part).order_by(outbox.c.id)).scalars()))
    assert [file["name"] for file in sent[-1]["attachments"]] == ["memory-2026-03-08.zip"], "a channel that can carry it gets the file"


@pytest.mark.rule("WD-97")
async def test_a_result_is_told_once_whatever_is_killed_and_also_after_a_new_conversation(house: CommandHouse) -> None:
    await house.talk("hello", "hi")
    old = await house.chat_of()
    await house.says("/memory export")
    await house.says("/new")
    (key,) = await house.job_keys(followups.KIND)
    house.clock.advance(seconds=40)
    await house.run("memory-export")
    await house.run(followups.KIND)
    before = await house.notices(old)
    await house.do(lambda connection: connection.execute(sa.update(jobs).where(jobs.c.key == key).values(state="waiting")))
    await house.run(followups.KIND)
    assert await house.notices(old) == before, "the worker died after it had told it"
    assert "Your memory with" in before[-1]
    address = await house.do(lambda connection: connection.execute(sa.select(outbox.c.address).order_by(outbox.c.id.desc())).scalars().first())
    assert address == "loopback:main:dm-owen", "to the chat, though its conversation was put aside"


@pytest.mark.rule("WD-55")
async def test_backfill_runs_missing_dates_and_tells_each(house: CommandHouse) -> None:
    for day in ("2026-02-01", "2026-02-02"):
        house.clock.now = utc(f"{day}T12:00")
        await house.talk(f"on {day}", "yes")
    house.clock.now = utc("2026-03-08T20:00")
    house.script = each_said
    assert (await house.says("/summary backfill 1")).startswith("These days are being summarised: 2026-02-02.")
    await house.results()
    assert (await house.notices(await house.chat_of()))[-1].startswith("- 2026-02-02: Summarised (2026-02-02); ")
    assert await house.says("/summary backfill x") == "Write /summary backfill, or with a number of days from 1 to 60."
    await house.says("/summary backfill")
    await house.results()
    assert await house.says("/summary backfill") == "No day is missing."


@pytest.mark.rule("WD-52")
async def test_a_summary_by_hand_takes_what_is_left_and_says_when_nothing_is(house: CommandHouse) -> None:
    house.script = each_said
    await house.talk("the garden is planted", "Good.")
    assert (await house.says("/summary now")).startswith("I am summarising")
    await house.results()
    assert "the garden is planted" in house.day(NIGHT)
    assert (await house.notices(await house.chat_of()))[-1] == "Summarised (2026-03-08); points noted: 2."
    await house.says("/summary now")
    await house.results()
    assert (await house.notices(await house.chat_of()))[-1] == "Nothing new to summarise."


@pytest.mark.rule("WD-100")
async def test_a_summary_that_must_be_tried_again_says_so_once_and_then_what_came_of_it(house: CommandHouse) -> None:
    await house.talk("the garden is planted", "Good.")
    await house.says("/summary now")
    asked_for = sa.update(jobs).where(jobs.c.kind == "daily-summary")
    soon = house.clock() + timedelta(hours=1)
    await house.do(lambda connection: connection.execute(asked_for.values(attempts=1, error_class="ModelBusy", not_before=soon)))
    for _ in range(3):
        await house.results()
        house.clock.advance(minutes=1)
    told = await house.notices(await house.chat_of())
    assert told[-1] == "It could not be summarised yet (the model is busy or cannot be reached); it is tried again."
    assert told.count(told[-1]) == 1
    house.script = each_said
    house.clock.advance(hours=1)
    await house.results()
    assert (await house.notices(await house.chat_of()))[-1] == "Summarised (2026-03-08); points noted: 2."


@pytest.mark.rule("WD-112", "WD-124")
async def test_an_index_is_built_anew_and_the_counts_follow(house: CommandHouse) -> None:
    await house.remembers("Likes tea")
    assert (await house.says("/memory rebuild-index")).startswith("The index is being built anew")
    await house.results()
    told = (await house.notices(await house.chat_of()))[-1]
    assert told == "The index was built anew: 1 file in 1 chunk; before 0 files in 0 chunks."
    assert await house.says("/memory rebuild-index", by="ada") == "This needs the role owner."


async def test_tasks_are_listed_and_changed_by_their_maker_or_a_manager(house: CommandHouse) -> None:
    await house.talk("hello", by="uma", group=True)
    chat = await house.chat_of(group=True)
    space = str(await house.space())
    wanted = Wanted(chat=chat, person_id=person_id("uma"), scope=space, text="water the plants", when="0 9 * * 1", language="en")
    task = await house.tasks.create(wanted)
    assert "water the plants" in await house.says("/tasks", by="mia", group=True)
    for who, may in (("gus", False), ("uma", True), ("mia", True), ("owen", True)):
        said = await house.says(f"/tasks pause {task.id}", by=who, group=True)
        assert (said == f"Task {task.id} is paused." or "paused" in said) is may, said
        if may:
            await house.says(f"/tasks resume {task.id}", by=who, group=True)


# -- what results say --------------------------------------------------------------------------------------------------------


def _row(state: State = "done", **result: object) -> JobRow:
    job = Job(kind="dream", key="k", scope="root", payload={"date": NIGHT})
    when = utc("2026-03-08T20:00")
    return JobRow(
        id=1, job=job, state=state, attempts=0, lost_leases=0, result=result, error_class="ModelBusy", error="", lease_owner="", lease_until=None,
        created_at=when, updated_at=when,
    )  # fmt: skip


@pytest.mark.rule("WD-78", "WD-80")
@pytest.mark.parametrize(
    ("what", "row", "said"),
    [
        ("dream", _row(skipped="nothing new"), "Nothing new to dream about."),
        ("dream", _row(skipped="model"), "demo model cannot tend a memory"),
        ("dream", _row("parked"), "The dream failed and changed nothing."),
        ("dream", _row("waiting"), "The dream could not be finished yet (the model is busy or cannot be reached)"),
        ("dream", _row(refused={"lost": 14, "total": 40, "limit": 10}), "14 of 40 lines would go, limit 10"),
        ("summary", _row("parked"), "could not be summarised yet (the model is busy or cannot be reached)"),
        ("rebuild", _row("parked"), "could not be built anew (the model is busy or cannot be reached)"),
        ("rebuild", _row(before=[1, 2], after=[3, 4], vectors="no answer"), "It finds words only: no answer"),
        ("export", _row("cancelled"), "The archive could not be made."),
    ],
)
async def test_a_result_that_is_no_success_says_what_happened(house: CommandHouse, what: str, row: JobRow, said: str) -> None:
    await house.talk("hello", "hi")
    chat = await house.chat_of()
    told = await house.results_words[what](followups.Wanted(what=what, conversation_id=chat.id, language="en", values={}), [row])
    assert said in told.text


# of an older program, of this one, and one that took nothing
SECTIONS = [{"name": "MEMORY.md", "tokens": 40}, {"name": "history", "tokens": 1100}, {"name": "tools", "tokens": 0}]


@pytest.mark.rule("WD-91")
async def test_why_shows_what_the_last_answer_read(house: CommandHouse) -> None:
    await house.talk("hello", "hi")
    chat = await house.chat_of()
    receipt = {
        "model": "scripted", "input_tokens": 1234, "sections": SECTIONS, "tools": [{"name": "memory_search"}],
        "memories": {"used": [{"path": "user.md", "date": "", "origin": ""}, {"path": "MEMORY.md", "date": NIGHT, "origin": "person"}]},
    }  # fmt: skip
    row = {"id": "t-1", "conversation_id": chat.id, "state": "answered", "started_at": house.clock(), "ended_at": house.clock(), "receipt": receipt}
    await house.do(lambda connection: connection.execute(sa.insert(turns), row))
    said = await house.says("/memory why")
    assert said.splitlines() == [
        "The last answer: 1,234 tokens read by scripted.", "- MEMORY.md: 40", "- earlier turns: 1,100", "- user.md",
        f"- MEMORY.md · {NIGHT} · from what was said", "- used the tool memory_search",
    ]  # fmt: skip
    for language, words in (("ja", ("これまでの会話: 1,100", "話した言葉から")), ("zh", ("之前的对话: 1,100", "来自说过的话"))):
        told = await house.says("/memory why", language=language)
        assert [each for each in words if each not in told] == [], "no name of ours that only programs know"
