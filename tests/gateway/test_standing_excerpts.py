"""Standing text that does not fit: marked excerpts in the prompt, and stored rows untouched, in every profile (RS-70, RS-171)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway import live_window, windows
from memory import blocks, conversations, tokens
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.fitting import CUT, LEFT_OUT, Standing
from memory.recall.kinds import Kind
from memory.recall.private_parts import Reader
from memory.recall.summary_rows import NewSummary, State
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse, living

SENTENCES = {
    "en": "Ana moved her boat 👨‍👩‍👧‍👦🇯🇵 to the north quay. ",
    "ja": "アナは船👨‍👩‍👧‍👦🇯🇵を北の岸壁に移した。",
    "zh": "安娜把船👨‍👩‍👧‍👦🇯🇵移到了北边的码头。",
}
LITTLE = {"memory_budget": 400, "memory_overrun": 0}  # 280 tokens of standing text


def numbered(language: str, many: int) -> str:
    return "".join(f"{n:03}{SENTENCES[language]}" for n in range(many)).strip()


@pytest.fixture
async def lite(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(sqlite, tmp_path, clock) as made:
        yield made


async def standing(house: EntryHouse, chat: str, **asked: Any) -> Standing:
    found = await house.conversation(chat)
    how = live_window.Asked(**asked)
    profile = windows.profile_of(house.config, found)
    return await house.db.read(lambda c: live_window.standing(c, found, profile, house.config, house.clock(), asked=how))


async def row(house: EntryHouse, chat: str, kind: Kind, text: str, *words: str, **more: Any) -> int:
    """A row that stands for the messages with these words, which have left."""
    at = await house.numbers(chat)
    new = NewSummary(conversation_id=chat, kind=kind, text=text, sources=[at[word] for word in words], **more)
    edge = max(at[word] for word in words)
    await house.db.write(lambda c: conversations.move_edge(c, chat, edge))
    return await house.db.write(lambda c: summary_rows.add(c, new, house.clock()))


async def stored(house: EntryHouse, chat: str) -> list[dict[str, Any]]:
    return [asdict(each) for each in await house.rows(chat, states=tuple(State))]


@pytest.mark.rule("RS-70", "RS-171", "RS-66")
@pytest.mark.case("AT-23", "K33")
@pytest.mark.parametrize("profile", ["companion", "calendar"])
@pytest.mark.parametrize("language", SENTENCES)
async def test_a_row_larger_than_the_room_is_sent_as_an_excerpt_and_stored_as_it_was(lite: EntryHouse, language: str, profile: str) -> None:
    await lite.set(context=LITTLE)
    lite.profile = profile
    chat = await lite.made()
    await lite.talk(chat, 8)
    long, dated = numbered(language, 120), profile == "calendar"
    older = await row(lite, chat, Kind.DAY if dated else Kind.RECENT, "Older. " * 40, "word1", "word2", local_date="2026-03-07" if dated else "")
    newer = await row(lite, chat, Kind.DAY if dated else Kind.RECENT, long, "word3", "word4", local_date="2026-03-08" if dated else "")
    before = await stored(lite, chat)
    told = await standing(lite, chat)
    assert tokens.count(told.text) <= 280
    assert LEFT_OUT in told.text and "Older" not in told.text
    kept = told.text.partition(f"{CUT} ")[2]
    assert kept.split("\n")[0] == long[-len(kept.split("\n")[0]) :], "its end, word for word"
    assert kept[:3].isdigit(), "from where a sentence begins"
    assert (f"2026-03-08 Sunday: {CUT}" in told.text) is dated
    assert [(each.id, each.kind, each.cut) for each in told.stood] == [(newer, "day" if dated else "recent", True)]
    assert (told.left_out, told.cut) == (1, True)
    assert await stored(lite, chat) == before
    await lite.set(context={})
    whole = await standing(lite, chat)
    assert long in whole.text and [each.id for each in whole.stood] == [older, newer] and not whole.cut, "more room shows it whole again"


@pytest.mark.rule("RS-171", "RS-66")
async def test_waiting_extracts_beyond_the_room_leave_a_mark_too(lite: EntryHouse) -> None:
    await lite.set(context=LITTLE)
    lite.profile = "companion"
    chat = await lite.made()
    await lite.talk(chat, 40)
    at = await lite.numbers(chat)

    def leave(c: sa.Connection) -> None:
        for n in range(1, 40, 2):
            blocks.put_extract(c, chat, at[f"word{n}"], at[f"word{n + 1}"], f"Ana: word{n} and so on and so forth, until it was late", lite.clock())
        conversations.move_edge(c, chat, at["word40"])

    await lite.db.write(leave)
    told = await standing(lite, chat)
    assert tokens.count(told.text) <= 280
    assert LEFT_OUT in told.text and "word39 " in told.text and "word1 " not in told.text
    assert {each.kind for each in told.stood} == {"block"}
    assert told.left_out + len(told.stood) == 20


@pytest.mark.rule("RS-171", "WD-43")
async def test_turns_that_left_an_assistants_chat_do_not_go_in_silence_either(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 4)
    at = await lite.numbers(chat)

    def leave(c: sa.Connection) -> None:
        blocks.put_extract(c, chat, at["word1"], at["word2"], "\n".join(f"Ana: {n} and so on until it was late" for n in range(300)), lite.clock())
        conversations.move_edge(c, chat, at["word2"])

    await lite.db.write(leave)
    told = await standing(lite, chat)
    assert LEFT_OUT in told.text and "299 and" in told.text
    assert tokens.count(told.text) <= blocks.TOKENS_MAX
    assert [(each.kind, each.first, each.last, each.cut) for each in told.stood] == [("block", at["word1"], at["word2"], True)]


@pytest.mark.rule("RS-93", "RS-70")
async def test_an_entry_at_the_edge_is_cut_without_what_only_some_know(lite: EntryHouse) -> None:
    await lite.set(context=LITTLE)
    chat = await lite.made()
    await lite.talk(chat, 30)
    await lite.configure(chat, hide=True, tail=0)
    number = await lite.write(chat, 1, 10, numbered("en", 60) + ' {{#if char == "Mira"}}Mira hid the key. She told nobody.{{/if}}')
    for reader in (Reader(), Reader(voices=("Mira",)), Reader(voices=("Mira", "Ren"), several=True)):
        told = await standing(lite, chat, reader=reader)
        assert f"- {CUT} " in told.text and "059Ana" in told.text
        assert "key" not in told.text and "nobody" not in told.text
        assert [(each.id, each.kind, each.cut) for each in told.stood] == [(number, "entry", True)]
