"""The model's own hand in memory files: where it reaches, what it may not write, and whose words a line then rests on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tools.port import Tool, spec_of
from agent.turn import Record, ToolUse
from gateway.turn_store import TurnStart
from memory.database import Database
from memory.lines import entries, line_hash
from memory.provenance import Origin
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.memory_desk import Desk, desk, scope, use
from tests.memory.test_paths import HOSTILE, nothing_changes

ANNA, BEN = scope("people/p-aaaaaaaaab"), scope("people/p-bbbbbbbbbb")
CLUB = scope("spaces/s-cccccccccc")


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(sqlite, clock, tmp_path) as house:
        await house.person()
        await house.person(ANNA.id, scope=str(ANNA))
        yield house


async def group(house: Desk) -> dict[str, Tool]:
    await house.space(CLUB.id)
    return await house.tools(kind="group", space_id=CLUB.id)


# -- where


@pytest.mark.case("CF-10", "WP-18")
@pytest.mark.rule("WD-20", "WD-104")
@pytest.mark.parametrize("who", ["p-aaaaaaaaaa", ANNA.id])
async def test_no_hostile_path_is_read_or_written(house: Desk, who: str) -> None:
    house.put("MEMORY.md", "- the owner's secret\n")
    house.put("MEMORY.md", "- Ben's secret\n", BEN)
    tools = await house.tools(person_id=who)
    with nothing_changes(house.folder):
        for path in HOSTILE:
            for call in ({"path": path, "text": "x"}, {"path": path, "new": "x"}, {"path": path}):
                name = "file_write" if "text" in call else "file_edit" if "new" in call else "memory_get"
                answer = await use(tools[name], **call)
                assert answer.startswith("error: "), (path, answer)
                assert "secret" not in answer
    assert house.written == []


@pytest.mark.rule("WD-104", "WD-10")
async def test_another_scope_cannot_be_reached(house: Desk) -> None:
    house.put("MEMORY.md", "- 主人的秘密\n")
    tools = await house.tools(person_id=ANNA.id)
    assert (await use(tools["file_edit"], path="MEMORY.md", new="likes tea")).startswith("Written")
    assert house.text("MEMORY.md", ANNA) == "- likes tea\n"
    assert house.text("MEMORY.md") == "- 主人的秘密\n"
    assert "主人" not in await use(tools["memory_get"], path="MEMORY.md")
    assert "主人" not in await use(tools["memory_search"], query="主人的秘密")


@pytest.mark.rule("WD-104")
async def test_diaries_public_pages_and_the_persona_are_out_of_reach_for_those_they_are_not_for(house: Desk) -> None:
    owner, anna, club = await house.tools(), await house.tools(person_id=ANNA.id), await group(house)
    for tools in (owner, anna, club):
        assert "dreams alone" in await use(tools["file_edit"], path="memory/dreams/2026-03-08.md", new="x")
        assert (await use(tools["file_write"], path="knowledge/public/x.md", text="x")).startswith("error: ")
        assert (await use(tools["file_edit"], path="RULE.md", new="x")).startswith("error: ")
        assert (await use(tools["file_edit"], path="notes.md", new="x")).startswith("error: ")
    assert "owner's private chat" in await use(anna["file_edit"], path="system.md", new="be rude")
    assert "owner's private chat" in await use(club["file_edit"], path="system.md", new="be rude")
    assert "admins" in await use(club["file_edit"], path="space.md", new="x")
    assert (await use(owner["file_edit"], path="system.md", new="Be brief.")).startswith("Written")
    assert (await use(anna["file_edit"], path="user.md", new="Anna")).startswith("Written")
    assert [path for _, path in house.written] == ["system.md", "user.md"]


@pytest.mark.rule("WD-9")
async def test_no_tool_takes_a_scope(house: Desk) -> None:
    tools = await house.tools()
    questions = await house.questions(await house.start("hi"))
    assert questions.tool is not None
    for tool in (*tools.values(), questions.tool):
        assert not {"scope", "person", "person_id", "space"} & set(spec_of(tool).parameters["properties"])


@pytest.mark.rule("WD-9", "WD-104")
async def test_a_challenge_and_a_chat_with_memory_off_have_no_tool_and_a_stranger_only_reads_open_pages(house: Desk) -> None:
    assert await house.tools(kind="challenge") == {}
    assert await house.tools(memory_on=False) == {}
    house.put("knowledge/public/opening.md", "# Hours\n\nWe open at nine.\n")
    house.put("MEMORY.md", "- nine lives\n")
    stranger = await house.start("when", person_id=ANNA.id)
    tools = house.toolmaking.tools_for(house.facts(_unknown(stranger)))
    assert [tool.name for tool in tools] == ["memory_search", "memory_get"]
    found = await use(tools[0], query="nine")
    assert "We open at nine" in found and "lives" not in found
    assert (await use(tools[1], path="MEMORY.md")).startswith("error: ")


# -- what


@pytest.mark.rule("WD-20")
@pytest.mark.parametrize("letter", ["a", "夢", "я"])
async def test_a_line_or_a_file_above_its_limit_is_refused(house: Desk, letter: str) -> None:
    tools = await house.tools()
    assert "4,000 characters" in await use(tools["file_edit"], path="MEMORY.md", new=letter * 4_001)
    big = "\n".join([letter * 3_000] * 100)
    assert "262,144 bytes" in await use(tools["file_write"], path="knowledge/big.md", text=big)
    assert house.text("MEMORY.md") == house.text("knowledge/big.md") == house.text("knowledge/index.md") == ""


@pytest.mark.rule("WD-22")
@pytest.mark.parametrize(
    "line",
    ["the password is hunter2xyz", "パスワードは hunter2xyz です", "密码是 hunter2xyz", "sk-proj-abcdefghij0123456789abcd", "4111 1111 1111 1111"],
)
async def test_secrets_are_refused_and_stand_nowhere(house: Desk, line: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = await house.tools()
    foreign = await house.tools(foreign=True)
    for hand in (tools, foreign):
        answer = await use(hand["file_edit"], path="MEMORY.md", new=line)
        assert "secrets are never kept" in answer
        assert "hunter2xyz" not in answer + caplog.text
    assert house.text("MEMORY.md") == ""
    assert await house.changes.waiting(ROOT) == ()


@pytest.mark.rule("WD-18")
async def test_a_day_keeps_everything_that_stands_in_it(house: Desk) -> None:
    tools = await house.tools()
    path = "memory/2026-03-08.md"
    await use(tools["file_edit"], path=path, new="公園へ行った")
    await use(tools["file_edit"], path=path, new="saw a heron")
    text = "# Daily Memory: 2026-03-08\n\n- 公園へ行った\n- saw a heron\n"
    assert house.text(path) == text
    for call in ({"old": "saw a heron", "new": "saw nothing"}, {"old": "- saw a heron", "new": ""}):
        assert "what stands in it stays" in await use(tools["file_edit"], path=path, **call)
    assert "what stands in it stays" in await use(tools["file_write"], path=path, text="# Daily Memory: 2026-03-08\n\n- only this\n")
    assert house.text(path) == text
    assert (await use(tools["file_write"], path=path, text=f"{text}- 晚上下雨了\n")).startswith("Written")
    assert house.text(path) == f"{text}- 晚上下雨了\n"


@pytest.mark.rule("WD-104")
async def test_a_passage_is_changed_only_where_it_stands_once_and_the_rest_stays_byte_for_byte(house: Desk) -> None:
    before = "\ufeff# 記憶\r\n\r\n- Ada likes tea\r\n- Ada likes tea cakes\n- 她住在柏林\r\n\r\n| a | b |\r\n"
    house.put("MEMORY.md", before)
    tools = await house.tools()
    assert "occurs 2 times" in await use(tools["file_edit"], path="MEMORY.md", old="Ada likes tea", new="x")
    assert "is not in the file" in await use(tools["file_edit"], path="MEMORY.md", old="Ada likes coffee", new="x")
    assert house.text("MEMORY.md") == before
    await use(tools["file_edit"], path="MEMORY.md", old="她住在柏林", new="她住在里昂")
    assert house.text("MEMORY.md") == before.replace("柏林", "里昂")
    await use(tools["file_edit"], path="MEMORY.md", old="- Ada likes tea cakes", new="")
    assert house.text("MEMORY.md") == before.replace("柏林", "里昂").replace("- Ada likes tea cakes\n", "")


@pytest.mark.rule("WD-104")
async def test_a_file_is_not_emptied_and_an_empty_change_is_none(house: Desk) -> None:
    house.put("MEMORY.md", "- one\n")
    tools = await house.tools()
    assert "would become empty" in await use(tools["file_write"], path="MEMORY.md", text="# Memory\n")
    assert "nothing to do" in await use(tools["file_edit"], path="MEMORY.md", old=" ", new="\n")
    assert "Nothing was changed" in await use(tools["file_write"], path="MEMORY.md", text="- one")
    assert house.text("MEMORY.md") == "- one\n"


@pytest.mark.rule("WD-19", "WD-104")
@pytest.mark.parametrize("fact", ["likes tea", "お茶が好き", "喜欢喝茶"])
async def test_a_memory_is_not_said_anew_without_a_yes(house: Desk, fact: str) -> None:
    """A model that writes a whole file to remember one thing would take everything else out of it."""
    before = "# Memory\n\n" + "".join(f"- {number}: {fact}\n" for number in range(60))
    house.put("MEMORY.md", before)
    tools = await house.tools()
    answer = await use(tools["file_write"], path="MEMORY.md", text=f"- {fact}\n")
    assert answer.startswith("Not written yet: it would take out much"), answer
    assert f"- taken out: - 38: {fact}\n- taken out: 21 lines more" in answer
    assert "text of others" not in answer
    assert house.text("MEMORY.md") == before
    (change,) = await house.changes.waiting(ROOT)
    assert len(change.removed) == 61, "the heading too"
    fewer = before.replace(f"- 3: {fact}\n", "").replace(f"- 4: {fact}\n", f"- 4: {fact}.\n")
    assert (await use(tools["file_write"], path="MEMORY.md", text=fewer)).startswith("Written"), "some lines may go"
    house.put("knowledge/tea.md", before)
    assert (await use(tools["file_write"], path="knowledge/tea.md", text="# Tea\n\nGreen.\n")).startswith("Written"), "a page is the model's"


# -- pages


@pytest.mark.rule("WD-8")
@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("knowledge/cats/tama.md", "# Tama [the cat]\n\nShe is old.\n", "- [Tama (the cat)](cats/tama.md)"),
        ("knowledge/猫/小白.md", "# 小白\n\n白い猫。\n", "- [小白](猫/小白.md)"),
        ("knowledge/trains.md", "---\ntitle: Züge\n---\n\ntext\n", "- [Züge](trains.md)"),
        ("knowledge/plain.md", "no heading at all\n", "- [plain](plain.md)"),
    ],
)
async def test_a_new_page_gets_one_line_in_the_index_of_its_scope(house: Desk, path: str, text: str, line: str) -> None:
    tools = await house.tools(person_id=ANNA.id)
    assert "listed in knowledge/index.md" in await use(tools["file_write"], path=path, text=text)
    await use(tools["file_write"], path=path, text=f"{text}More.\n")
    assert house.text(path, ANNA) == f"{text}More.\n"
    assert house.text("knowledge/index.md", ANNA) == f"# Knowledge\n\n{line}\n"
    assert house.text("knowledge/index.md") == ""
    rows = await house.lines("knowledge/index.md", ANNA)
    assert rows[line_hash(line)].author == "tool"


@pytest.mark.rule("WD-8")
async def test_with_knowledge_off_pages_are_neither_written_nor_read(house: Desk) -> None:
    house.put("knowledge/x.md", "tea\n")
    house.settings["knowledge"] = False
    tools = await house.tools()
    for name, call in (("file_write", {"text": "new"}), ("file_edit", {"new": "new"}), ("memory_get", {})):
        assert "switched off" in await use(tools[name], path="knowledge/x.md", **call)
    assert "Nothing was found" in await use(tools["memory_search"], query="tea")
    house.settings["knowledge"] = True
    start = await house.start("x")
    scoped = {tool.name: tool for tool in house.toolmaking.tools_for(house.facts(start, knowledge=False))}
    assert "switched off" in await use(scoped["file_write"], path="knowledge/x.md", text="new")
    assert house.text("knowledge/x.md") == "tea\n"


@pytest.mark.rule("WD-139")
async def test_a_page_that_would_fill_the_head_is_refused_on_saving(house: Desk) -> None:
    tools = await house.tools()
    always = "---\nlore: always\n---\n\n"
    assert (await use(tools["file_write"], path="knowledge/a.md", text=always + "夢" * 600)).startswith("Written")
    assert "1,000 tokens" in await use(tools["file_write"], path="knowledge/b.md", text=always + "city " * 300)
    assert house.text("knowledge/b.md") == ""
    assert "always, match or none" in await use(tools["file_write"], path="knowledge/b.md", text="---\nlore: sometimes\n---\nx")
    assert (await use(tools["file_write"], path="knowledge/b.md", text="---\nlore: match\n---\n" + "city " * 300)).startswith("Written")
    assert "1,000 tokens" in await use(tools["file_edit"], path="knowledge/b.md", old="lore: match", new="lore: always")
    house.put("knowledge/a.md", always + "夢" * 1_200)  # by hand, whatever it costs
    assert (await use(tools["file_write"], path="knowledge/a.md", text=always + "夢" * 1_000)).startswith("Written")


# -- whose words


@pytest.mark.rule("WD-104", "WD-105")
async def test_a_line_rests_on_the_person_unless_text_of_others_was_read(house: Desk) -> None:
    start = await house.start("note this")
    record = Record()
    tools = {tool.name: tool for tool in house.toolmaking.tools_for(house.facts(start, record))}
    await use(tools["file_edit"], path="memory/2026-03-08.md", new="I moved to Lyon")
    record.tools.append(ToolUse(name="memory_search", ok=True, milliseconds=1))
    await use(tools["file_edit"], path="memory/2026-03-08.md", new="リヨンは雨")
    record.tools.append(ToolUse(name="web_fetch", ok=True, milliseconds=1, foreign=True))
    await use(tools["file_edit"], path="memory/2026-03-08.md", new="里昂有两条河")
    rows = await house.lines("memory/2026-03-08.md")
    found = [rows[entry.hash] for entry in entries(house.text("memory/2026-03-08.md"))]
    assert [row.origin for row in found] == [Origin.PERSON, Origin.PERSON, Origin.MIXED]
    assert {(row.author, row.run_id, row.local_date) for row in found} == {("tool", start.questions[0].turn_id, "2026-03-08")}
    assert all(row.sources == (start.questions[0].id,) and row.speakers == ("p-aaaaaaaaaa",) for row in found)
    assert set(house.written) == {(ROOT, "memory/2026-03-08.md")}


@pytest.mark.rule("WD-7")
@pytest.mark.case("SC-23")
async def test_a_full_memory_is_told_with_its_figure_and_the_fact_is_kept(house: Desk) -> None:
    house.settings["memory"] = {"prompt_max_tokens": 100}
    tools = await house.tools("remember that I moved to Lyon")
    assert "% of what a prompt holds" in await use(tools["file_edit"], path="MEMORY.md", new="likes tea")
    house.put("MEMORY.md", "".join(f"- fact {number} about trains and tea\n" for number in range(40)))
    answer = await use(tools["file_edit"], path="MEMORY.md", new="moved to Lyon")
    assert "Tell the person this figure, and offer to merge lines" in answer
    assert int(answer.split("now takes ")[1].split(" %")[0]) > 100
    assert house.text("MEMORY.md").endswith("- moved to Lyon\n")


def _unknown(start: TurnStart) -> TurnStart:
    """The same turn by somebody who is not signed in."""
    return replace(start, scope="")
