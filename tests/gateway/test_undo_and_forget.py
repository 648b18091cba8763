"""Taking a change back, forgetting for good, and why a line is remembered (WD-89 to WD-92)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from gateway.forgetting import ForgettingExpired
from memory import conversations, message_changes, provenance
from memory.database import Database
from memory.file_schema import dreams, file_changes, file_lines, line_bars, proposals, summary_blocks
from memory.forget_match import Held
from memory.forgotten import forgotten_messages
from memory.layout import CURATED
from memory.lines import line_hash
from memory.provenance import LineRow, Origin
from memory.schema import job_parts, jobs, messages
from memory.scopes import ROOT, Scope, parse_scope
from tests.conftest import FakeClock
from tests.gateway.dreams import Dreamer, answer, entry, promote, shown
from tests.gateway.nights import OWNER, utc

NIGHT = "2026-03-08"


@pytest.fixture
async def both(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Dreamer]:
    clock.now = utc("2026-03-08T23:57")
    made = Dreamer(database, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Dreamer]:
    clock.now = utc("2026-03-08T23:57")
    made = Dreamer(sqlite, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


def rework(request: ModelRequest) -> str:
    """Bern becomes Basel, tea goes, a cat comes."""
    seen = shown(request)
    return answer(
        entry("Lives in Basel", old=[seen.line("Bern")], evidence=[seen.note("Basel")]),
        entry("Has a cat", evidence=[seen.note("cat")]),
        dropped={seen.line("tea"): "outdated"},
        keep=seen,
    )


async def dreamt(house: Dreamer) -> str:
    """A memory that a dream has changed; its text before."""
    house.write(CURATED, "# Mine\r\n\r\nMy own words\r\n\r\n")
    await house.remembers("Lives in Bern", "Likes tea", "Has a sister", "Plays chess", "Reads much")
    house.write(CURATED, house.memory().replace("\r\n", "\n").replace("\n", "\r\n"))
    before = house.memory()
    await house.notes(NIGHT, "Moved to Basel", "Got a cat")
    house.script = rework
    await house.dream(NIGHT)
    assert house.memory_lines() == ["My own words", "Lives in Basel", "Has a sister", "Plays chess", "Reads much", "Has a cat"]
    return before


# -- undo --------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-89", "WD-90")
async def test_undo_gives_the_file_back_byte_for_byte_and_the_next_nights_do_not_bring_the_change_again(both: Dreamer) -> None:
    """A11."""
    before = await dreamt(both)
    after = both.memory()
    done = await both.undoing.undo(ROOT)
    assert done is not None
    assert (done.path, done.cause, done.whole) == (CURATED, "dream", True)
    assert set(done.taken_back) == {"Lives in Basel", "Has a cat"}
    assert set(done.restored) == {"Lives in Bern", "Likes tea"}
    assert both.memory() == before
    newest = both.workspace.revisions(ROOT, CURATED)[0]
    assert both.workspace.revision(ROOT, CURATED, newest.id) == after
    rows = await both.rows()
    assert {line_hash("Lives in Bern"), line_hash("Likes tea")} <= set(rows)
    assert line_hash("Has a cat") not in rows
    assert all(line.used_by for line in (await both.lines(NIGHT)).values())
    assert [dream.state for dream in await both.dreams_of()] == ["undone"]

    calls = both.calls
    assert (await both.dream("2026-03-09")).result == {"skipped": "nothing new"}
    assert both.calls == calls
    await both.manual(3, force=True)
    assert [text for text in both.memory_lines() if "cat" in text or "Basel" in text] == []
    both.script = promote
    both.clock.advance(days=1)
    await both.notes("2026-03-10", "Got a cat", sources=["m-new"])
    await both.dream("2026-03-10")
    assert "Got a cat" in both.memory_lines()


@pytest.mark.rule("WD-89")
async def test_after_an_edit_by_hand_only_the_lines_of_the_change_are_reversed(both: Dreamer) -> None:
    await dreamt(both)
    both.write(CURATED, both.memory().replace("My own words", "My own words, mended").replace("- Has a cat\r\n", "- Has a cat, said I\r\n"))
    done = await both.undoing.undo(ROOT)
    assert done is not None
    assert not done.whole
    assert done.taken_back == ("Lives in Basel",)
    assert both.memory_lines() == [
        "My own words, mended", "Lives in Bern", "Has a sister", "Plays chess", "Reads much", "Has a cat, said I", "Likes tea",
    ]  # fmt: skip
    assert "\n" not in both.memory().replace("\r\n", "")
    assert line_hash("Lives in Bern") in await both.rows()
    assert await both.undoing.undo(ROOT) is None


@pytest.mark.rule("WD-89")
async def test_undo_goes_one_further_back_each_time_and_takes_back_what_a_tool_wrote(house: Dreamer) -> None:
    row = LineRow(hash=line_hash("Likes jazz"), origin=Origin.PERSON, author="tool", sources=("m-5",))
    page = "# Music\n\n- Likes jazz\n"
    await house.writer.change(ROOT, "knowledge/music.md", lambda _text: page, cause="tool", cause_id="t-1", row_of=lambda _entry: row)
    await house.notes(NIGHT, "Likes tea")
    await house.dream(NIGHT)
    first = await house.undoing.undo(ROOT)
    second = await house.undoing.undo(ROOT)
    assert first is not None
    assert second is not None
    assert (first.cause, second.cause, second.path) == ("dream", "tool", "knowledge/music.md")
    assert house.memory() == ""
    assert house.workspace.read(ROOT, "knowledge/music.md") is None
    assert await house.undoing.undo(ROOT) is None
    bars = await house.db.read(lambda c: provenance.bars_of(c, "root"))
    assert {(bar.reason, bar.hash, bar.sources) for bar in bars if bar.sources} == {("undone", line_hash("Likes jazz"), ("m-5",))}


@pytest.mark.rule("WD-90")
@pytest.mark.case("SC-19")
async def test_a_line_that_a_person_deleted_stays_away_though_its_note_is_there(both: Dreamer) -> None:
    await both.notes("2026-03-07", "[telegram chat_id=700001 msg=55] ok", "Likes tea")
    await both.dream("2026-03-07")
    both.write(CURATED, both.memory().replace("- [telegram chat_id=700001 msg=55] ok\n", ""))
    both.clock.advance(days=1)
    await both.notes("2026-03-08", "Plays chess")
    await both.dream("2026-03-08")
    await both.manual(3, force=True)
    assert both.memory_lines() == ["Likes tea", "Plays chess"]
    bars = await both.db.read(lambda c: provenance.bars_of(c, "root"))
    assert [bar.reason for bar in bars] == ["deleted"]
    both.clock.advance(days=1)
    await both.notes("2026-03-10", "[telegram chat_id=700001 msg=55] ok", sources=["m-99"])
    await both.dream("2026-03-10")
    assert "[telegram chat_id=700001 msg=55] ok" in both.memory_lines()


# -- forget ------------------------------------------------------------------------------------------------------------------


async def said(house: Dreamer, *texts: str, scope: str = "root", by: str = OWNER) -> list[str]:
    chat = await house.chat(title=f"Chat {texts[0][:5]}")
    return [(await house.says(chat, text, scope=scope, by=by)).id for text in texts]


async def everywhere(house: Dreamer) -> str:
    """A secret love of marzipan, in every store there is; the conversation's id."""
    chat = await house.chat(title="Sweets")
    mine = [(await house.says(chat, text)).id for text in ("I love marzipan, do not tell", "And I play chess")]
    await house.notes("2026-03-07", "Loves marzipan in secret", "Plays chess", sources=mine[:1])
    await house.notes(NIGHT, "A magazine says marzipan is healthy", origin=Origin.MIXED, sources=["m-x"])
    house.write("user.md", "# Me\n\n- Birthday gift: MARZIPAN\n- Tall\n")
    await house.dream(NIGHT)
    assert "Loves marzipan in secret" in house.memory_lines()
    assert len(await house.open()) == 1
    house.write(CURATED, house.memory() + "My own line\n")

    def put(c: sa.Connection) -> None:
        values = {"conversation_id": chat, "first_seq": 1, "last_seq": 2, "kind": "summary", "created_at": house.clock(), "updated_at": house.clock()}
        c.execute(sa.insert(summary_blocks), {**values, "text": "- Loves marzipan\n- Plays chess\n"})

    await house.db.write(put)
    return chat


async def all_words(house: Dreamer, folder: Path) -> str:
    """Every word in every file and every row, the raw messages and the log of requests apart."""
    texts = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file() and path.suffix == ".md"]
    for table in (file_lines, line_bars, dreams, proposals, file_changes, summary_blocks, job_parts, jobs):
        texts += [json.dumps(row, ensure_ascii=False, default=str) for row in await house.values(table)]
    return "\n".join(texts)


@pytest.mark.rule("WD-92")
async def test_forgetting_lists_first_then_removes_it_from_everywhere_and_nothing_brings_it_back(both: Dreamer, tmp_path: Path) -> None:
    """A11, N33, A16."""
    chat = await everywhere(both)
    both.workspace.revisions(ROOT, CURATED)
    asked = await both.forgetting.find(ROOT, "ＭＡＲＺＩＰＡＮ", person=OWNER)
    assert asked is not None
    assert "marzipan" in (await all_words(both, tmp_path)).casefold()
    stores = {match.store for match in asked.matches}
    assert stores == {"memory", "about", "daily", "candidate", "dream", "block", "diary", "backup"}
    assert {match.text for match in asked.matches if match.store == "memory"} == {"Loves marzipan in secret"}
    assert asked.messages >= 1

    counts = await both.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER)
    assert {name: counts[name] for name in ("memory", "about", "daily", "candidate", "block")} == {
        "memory": 1, "about": 1, "daily": 2, "candidate": 1, "block": 1,
    }  # fmt: skip
    assert "marzipan" not in (await all_words(both, tmp_path)).casefold()
    assert both.memory_lines() == ["Plays chess", "My own line"]
    user = both.workspace.read(ROOT, "user.md")
    assert user is not None
    assert user.content == "# Me\n\n- Tall\n"
    assert "Removed on request." in both.diary(NIGHT)
    assert "- Plays chess" in both.diary(NIGHT)
    texts = [row["text"] for row in await both.values(messages)]
    assert "I love marzipan, do not tell" in texts
    assert await both.db.read(lambda c: conversations.conversation(c, chat)) is not None

    await both.undoing.undo(ROOT)
    await both.manual(3, force=True)
    both.clock.advance(days=1)
    old_message = next(row["id"] for row in await both.values(messages) if "marzipan" in row["text"])
    await both.notes("2026-03-09", "Loves marzipan in secret", sources=[old_message])
    await both.dream("2026-03-09")
    assert not any("marzipan" in text for text in both.memory_lines())


@pytest.mark.rule("WD-92")
async def test_the_raw_messages_go_only_when_asked_for(house: Dreamer, tmp_path: Path) -> None:
    await everywhere(house)
    asked = await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    assert asked is not None
    counts = await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER, messages=True)
    assert counts["message"] == asked.messages
    rows = await house.values(messages)
    assert [(row["text"], row["state"]) for row in rows] == [("", "forgotten"), ("And I play chess", "live")]
    bars = await house.values(line_bars)
    assert "marzipan" not in json.dumps(bars, default=str)
    assert rows[0]["id"] in await house.db.read(lambda c: forgotten_messages(c, "root"))
    assert rows[1]["id"] not in await house.db.read(lambda c: forgotten_messages(c, "root"))
    assert await house.db.read(lambda c: forgotten_messages(c, "people/p-otheraaaaa")) == frozenset()


@pytest.mark.rule("WD-92")
async def test_nothing_is_forgotten_without_a_yes_of_the_same_person_within_ten_minutes(house: Dreamer) -> None:
    await everywhere(house)
    before = house.memory()
    asked = await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    assert asked is not None
    other = parse_scope("people/p-aaaaaaaaaa")
    for scope, proposal, person in ((ROOT, "q-nothing", OWNER), (ROOT, asked.proposal_id, "p-otheraaaaa"), (other, asked.proposal_id, OWNER)):
        with pytest.raises(ForgettingExpired):
            await house.forgetting.confirm(scope, proposal, person=person)
    house.clock.advance(minutes=10)
    with pytest.raises(ForgettingExpired):
        await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER)
    assert house.memory() == before
    assert await house.forgetting.find(ROOT, "nothing like this", person=OWNER) is None
    assert await house.forgetting.find(ROOT, " x ", person=OWNER) is None


@pytest.mark.rule("WD-92")
@pytest.mark.case("SC-24")
@pytest.mark.parametrize(
    ("line", "wish"),
    [("Anna mag Straßenbahnen", "STRASSENBAHN"), ("猫のシロが好き", "シロ"), ("喜欢小白", "小白"), ("Любит ёлки", "любит ЁЛКИ"), ("Likes tea", None)],
)
async def test_a_line_is_found_by_words_of_any_language_or_by_its_id_and_goes_with_its_note(house: Dreamer, line: str, wish: str | None) -> None:
    await house.notes(NIGHT, line, "Likes planning steaks")
    await house.dream(NIGHT)
    known = await house.whys.known(ROOT)
    assert [each.text for each in known] == [line, "Likes planning steaks"]
    assert (known[0].date, known[0].origin) == (NIGHT, Origin.PERSON)
    asked = await house.forgetting.find(ROOT, wish or known[0].id, person=OWNER)
    assert asked is not None
    assert {(match.store, match.text) for match in asked.matches if match.text} == {("memory", line), ("daily", line)}
    house.written.clear()
    await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER)
    assert house.memory_lines() == ["Likes planning steaks"]
    assert line not in house.day(NIGHT)
    assert {("root", CURATED), ("root", f"memory/{NIGHT}.md")} <= set(house.written)


@pytest.mark.rule("WD-92")
async def test_a_member_of_a_space_forgets_only_lines_that_rest_on_own_messages(house: Dreamer) -> None:
    scope = parse_scope(f"spaces/{await house.space('s-gardenaaaa', 'Garden club')}")
    for name in ("p-miaaaaaaaa", "p-benaaaaaaa"):
        await house.person(name, scope=f"people/{name}", role="user", name=name)
    [first, second] = await said(house, "I grow roses", "You grow roses too", scope=str(scope), by="p-miaaaaaaaa")
    [other] = await said(house, "I grow roses as well", scope=str(scope), by="p-benaaaaaaa")
    await house.notes(NIGHT, "Mia grows roses", scope=scope, by="p-miaaaaaaaa", sources=[first, second])
    await house.notes(NIGHT, "Ben grows roses", scope=scope, by="p-benaaaaaaa", sources=[other])
    await house.dream(NIGHT, scope)
    asked = await house.forgetting.find(scope, "roses", person="p-miaaaaaaaa", own_only=True)
    assert asked is not None
    assert {match.text for match in asked.matches if match.text} == {"Mia grows roses"}
    await house.forgetting.confirm(scope, asked.proposal_id, person="p-miaaaaaaaa", messages=True)
    assert house.memory_lines(scope) == ["Ben grows roses"]
    texts = [row["text"] for row in await house.values(messages)]
    assert "I grow roses as well" in texts
    assert "I grow roses" not in texts


@pytest.mark.rule("WD-92")
async def test_further_stores_forget_along(house: Dreamer) -> None:
    class Saved:
        name = "saved"

        def __init__(self) -> None:
            self.rows = ["Loves marzipan", "Plays chess"]

        async def find(self, scope: Scope, held: Held) -> Sequence[str]:
            return [row for row in self.rows if held.in_text(row)]

        async def forget(self, scope: Scope, held: Held) -> int:
            before = len(self.rows)
            self.rows = [row for row in self.rows if not held.in_text(row)]
            return before - len(self.rows)

    saved = Saved()
    house.forgetting._also = (saved,)  # pyright: ignore[reportPrivateUsage]
    asked = await house.forgetting.find(ROOT, "marzipan", person=OWNER)
    assert asked is not None
    assert [(match.store, match.text) for match in asked.matches] == [("saved", "Loves marzipan")]
    assert await house.forgetting.confirm(ROOT, asked.proposal_id, person=OWNER) == {"saved": 1}
    assert saved.rows == ["Plays chess"]


# -- why ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-91")
async def test_a_lines_chain_leads_to_the_messages_of_this_scope_and_to_no_others(both: Dreamer) -> None:
    """N13: a source of another scope is not told, whatever a row names."""
    await both.person("p-otheraaaaa", scope="people/p-otheraaaaa", role="user")
    [mine, gone] = await said(both, "I like tea", "I said this and took it back")
    [secret] = await said(both, "My secret", scope="people/p-otheraaaaa", by="p-otheraaaaa")
    await both.db.write(lambda c: message_changes.forget(c, gone))
    await both.notes("2026-03-07", "Likes tea", sources=[mine, gone, secret])
    await both.dream(NIGHT)
    line = (await both.whys.known(ROOT))[0]
    chain = await both.whys.chain(ROOT, line.id)
    assert chain is not None
    assert (chain.line.text, chain.line.path, chain.line.origin, chain.line.author) == ("Likes tea", CURATED, Origin.PERSON, "dream")
    [note] = chain.evidence
    assert (note.path, note.date, note.author) == ("memory/2026-03-07.md", "2026-03-07", "summary")
    assert [source.text for source in note.sources] == ["I like tea"]
    assert [source.text for source in chain.line.sources] == ["I like tea"]
    assert await both.whys.chain(parse_scope("people/p-otheraaaaa"), line.id) is None
    assert await both.whys.chain(ROOT, "abc") is None


@pytest.mark.rule("WD-91", "WD-5")
async def test_a_humans_line_says_so_and_a_lost_note_is_counted(house: Dreamer) -> None:
    await house.notes(NIGHT, "Likes tea")
    await house.dream(NIGHT)
    house.write(CURATED, house.memory() + "Mine\n")
    house.write(f"memory/{NIGHT}.md", "")
    mine: Any = await house.whys.chain(ROOT, line_hash("Mine"))
    assert (mine.line.origin, mine.line.author, mine.evidence) == (Origin.HUMAN, "human", ())
    tea: Any = await house.whys.chain(ROOT, line_hash("Likes tea"))
    assert (tea.evidence, tea.lost) == ((), 1)
