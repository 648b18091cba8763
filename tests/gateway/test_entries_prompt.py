"""What a prompt shows of entries and what it hides because of them, in every profile; what becomes of them when their messages change."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway import trimming, windows
from gateway.entries.live import HEAD, LEFT_OUT
from memory import conversations, message_changes
from memory.database import Database
from memory.recall.kinds import Kind
from memory.recall.private_parts import Reader
from memory.recall.summary_rows import State
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse, living
from tests.gateway.nights import OWNER


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(database, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def lite(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(sqlite, tmp_path, clock) as made:
        yield made


@pytest.mark.rule("RS-90", "RS-81")
async def test_hiding_off_on_with_a_tail_and_without(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 30)
    number = await house.write(chat, 1, 24)
    assert await house.words_sent(chat) == list(range(1, 31))
    assert "recap" not in await house.stands(chat), "its messages are sent"
    await house.configure(chat, hide=True)
    assert await house.words_sent(chat) == list(range(15, 31))
    assert "recap 1 to 24" in await house.stands(chat), "it stays beside its tail"
    await house.configure(chat, tail=0)
    assert await house.words_sent(chat) == list(range(25, 31))
    await house.configure(chat, collapse=True)
    assert await house.words_sent(chat) == list(range(25, 31)), "folding them together changes the page alone"
    entry = (await house.listing(chat)).entries[0]
    assert (entry.hidden, entry.left_out) == (24, False)
    await house.desk.switch(chat, OWNER, [number], enabled=False)
    assert await house.words_sent(chat) == list(range(1, 31))
    assert HEAD not in await house.stands(chat), "a disabled entry is not sent"


@pytest.mark.rule("RS-91")
async def test_a_smaller_tail_on_an_old_chat_acts_at_once_and_only_on_what_is_summarised(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 40)
    await house.configure(chat, hide=True)
    await house.write(chat, 5, 20)
    await house.write(chat, 18, 30)
    assert await house.words_sent(chat) == [1, 2, 3, 4, *range(21, 41)]
    await house.configure(chat, tail=3)
    assert await house.words_sent(chat) == [1, 2, 3, 4, *range(28, 41)]


@pytest.mark.rule("RS-92")
async def test_what_no_entry_stands_for_is_sent_and_counted(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 60)
    await house.configure(chat, hide=True, tail=0)
    await house.write(chat, 1, 20)
    assert len(await house.words_sent(chat)) == 40
    assert (await house.listing(chat)).uncovered == 40


@pytest.mark.rule("RS-92")
async def test_a_limit_of_the_profile_wins_and_the_number_still_tells(lite: EntryHouse) -> None:
    lite.profile = "companion"
    chat = await lite.made()
    for n in range(1, 81):
        await lite.asks(chat, f"word{n}")
    sent = await lite.words_sent(chat)
    assert len(sent) <= 50
    assert (await lite.listing(chat)).uncovered == 80


@pytest.mark.rule("RS-94")
async def test_deleting_one_of_two_overlapping_entries_shows_exactly_what_it_alone_hid(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 40)
    await house.configure(chat, hide=True, tail=0)
    first, second = await house.write(chat, 1, 20), await house.write(chat, 11, 30)
    assert await house.words_sent(chat) == list(range(31, 41))
    await house.desk.delete(chat, OWNER, [second])
    assert await house.words_sent(chat) == list(range(21, 41))
    await house.desk.delete(chat, OWNER, [first])
    assert await house.words_sent(chat) == list(range(1, 41))


@pytest.mark.rule("RS-72")
async def test_an_entry_is_sent_once_none_of_its_messages_is_live_and_stays_enabled(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 40)
    await house.write(chat, 1, 10)
    await house.write(chat, 8, 20)
    at = await house.numbers(chat)
    await house.db.write(lambda c: conversations.move_edge(c, chat, at["word12"]))
    assert "recap 1 to 10" in await house.stands(chat)
    assert "recap 8 to 20" not in await house.stands(chat)
    entries = (await house.listing(chat)).entries
    assert [(each.enabled, each.left_out) for each in entries] == [(True, False), (True, True)]


@pytest.mark.rule("RS-81", "RS-170")
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar"])
async def test_entries_stand_in_the_prompt_of_every_profile_the_oldest_talk_first(lite: EntryHouse, profile: str) -> None:
    lite.profile = profile
    chat = await lite.made()
    await lite.talk(chat, 30)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 11, 20)
    await lite.write(chat, 1, 10)
    told = await lite.stands(chat)
    assert told.index("recap 1 to 10") < told.index("recap 11 to 20")
    assert await lite.words_sent(chat) == list(range(21, 31))
    assert told == await lite.stands(chat), "the same rows give the same bytes"


@pytest.mark.rule("RS-66", "RS-171")
async def test_entries_beyond_their_room_are_left_out_whole_and_that_is_said(lite: EntryHouse) -> None:
    await lite.set(context={"memory_budget": 400, "memory_overrun": 0})
    chat = await lite.made()
    await lite.talk(chat, 40)
    await lite.configure(chat, hide=True, tail=0)
    for first in (1, 11, 21):
        await lite.write(chat, first, first + 9, f"recap{first} " + "and so on " * 45)
    told = await lite.stands(chat)
    assert LEFT_OUT in told
    assert "recap21" in told
    assert "recap1 " not in told


@pytest.mark.rule("RS-93")
async def test_a_private_part_reaches_its_readers_alone(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 30)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 1, 10, 'They met. {{#if char == "Mira"}}Mira hid the key.{{/if}}')
    assert "key" not in await lite.stands(chat)
    assert "They met. Mira hid the key." in await lite.standing_as(chat, reader=Reader(voices=("Mira",)))
    told = await lite.standing_as(chat, reader=Reader(voices=("Mira", "Ren"), several=True, language="zh"))
    assert "［只有Mira知道］ Mira hid the key." in told
    assert "key" not in await lite.standing_as(chat, reader=Reader(voices=("Ren",)))


@pytest.mark.rule("RS-93", "RS-72", "RS-90")
async def test_an_entry_that_tells_some_readers_nothing_hides_nothing_from_them(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 40)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 1, 10, '{{#if char == "Mira"}}Mira hid the key.{{/if}}')
    assert await lite.words_sent(chat) == list(range(1, 41)), "whoever is told nothing of it reads the messages"
    assert "key" not in await lite.standing_as(chat, reader=Reader(voices=("Ren",)))
    await lite.write(chat, 5, 30, "They met.")
    assert await lite.words_sent(chat) == [1, 2, 3, 4, *range(31, 41)], "what another entry tells of all the same"
    for reader in (Reader(voices=("Ren",)), Reader(voices=("Mira",))):
        told = await lite.standing_as(chat, reader=reader)
        assert "They met." in told, "the one for Mira does not speak for it"
        assert "key" not in told, "it waits while messages of its own are sent"
    at = await lite.numbers(chat)
    await lite.db.write(lambda c: conversations.move_edge(c, chat, at["word12"]))
    assert "Mira hid the key." in await lite.standing_as(chat, reader=Reader(voices=("Mira",)))
    assert "key" not in await lite.standing_as(chat, reader=Reader(voices=("Ren",)))


@pytest.mark.rule("RS-76")
async def test_an_old_reply_that_is_made_anew_hears_of_nothing_later(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 30)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 1, 10)
    await lite.write(chat, 11, 20)
    at = await lite.numbers(chat)
    told = await lite.standing_as(chat, before=at["word15"])
    assert "recap 1 to 10" in told
    assert "recap 11 to 20" not in told


@pytest.mark.rule("RS-12")
async def test_with_memory_off_nothing_is_hidden(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 20)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 1, 10)
    await lite.change(chat, memory_on=False)
    assert await lite.words_sent(chat) == list(range(1, 21))


@pytest.mark.rule("RS-81")
async def test_a_context_that_was_emptied_for_good_has_no_entry_and_nothing_to_count(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 20)
    await lite.configure(chat, hide=True, tail=0)
    await lite.write(chat, 1, 10)
    found = await lite.conversation(chat)
    cleared = {**found.settings, windows.CLEARED: found.last_seq}
    await lite.db.write(lambda c: conversations.change(c, chat, window_edge=found.last_seq, settings=cleared))
    await lite.talk(chat, 6, first=21)
    assert HEAD not in await lite.stands(chat)
    assert (await lite.listing(chat)).uncovered == 6
    await lite.desk.backfill(chat)
    await lite.make()
    rows = await lite.rows(chat, Kind.ENTRY)
    assert [row.text for row in rows if row.origin == "automatic"] == [" / ".join(f"word{n}" for n in range(21, 27))]


# -- messages that change ----------------------------------------------------------------------------------------------


async def forget(house: EntryHouse, chat: str, word: str) -> None:
    found = await house.db.read(lambda c: conversations.window(c, chat, 0))
    gone = next(message for message in found if message.text == word)
    await house.db.write(lambda c: message_changes.forget(c, gone.id))


async def generated(house: EntryHouse, first: int, to: int) -> tuple[str, int]:
    chat = await house.made()
    await house.talk(chat, 20)
    await house.configure(chat, hide=True, tail=0)
    await house.desk.generate(chat, OWNER, first=first, to=to)
    await house.make()
    return chat, (await house.listing(chat)).entries[0].id


@pytest.mark.rule("RS-189", "RS-166")
async def test_a_forgotten_message_takes_its_entry_out_at_once_and_it_is_made_anew_without(house: EntryHouse) -> None:
    chat, _ = await generated(house, 1, 10)
    assert "word3" in await house.stands(chat)
    await forget(house, chat, "word3")
    told = await house.prompt(chat)
    assert "word3" not in told.replace("word30", "")
    assert await house.words_sent(chat) == [n for n in range(1, 21) if n != 3], "what it hid is sent meanwhile"
    await house.plan()
    await house.run("restate-summaries")
    entry = (await house.listing(chat)).entries[0]
    assert (entry.text, entry.enabled, entry.messages) == (" / ".join(f"word{n}" for n in range(1, 11) if n != 3), True, 9)
    assert await house.words_sent(chat) == list(range(11, 21))
    kept = [row.text for row in await house.rows(chat, Kind.ENTRY, states=tuple(State))]
    assert not any("word3 " in text for text in kept)


@pytest.mark.rule("RS-189")
@pytest.mark.parametrize("waiting", [True, False])
async def test_an_entry_that_is_off_or_waits_says_nothing_of_what_was_forgotten(house: EntryHouse, *, waiting: bool) -> None:
    chat = await house.made()
    await house.talk(chat, 12)
    await house.configure(chat, review=waiting)
    await house.desk.generate(chat, OWNER, first=1, to=10)
    await house.make()
    await house.desk.switch(chat, OWNER, None, enabled=False)
    await forget(house, chat, "word3")
    assert (await house.listing(chat)).entries == ()
    assert all(row.text == "" for row in await house.rows(chat, Kind.ENTRY, states=tuple(State)))


@pytest.mark.rule("RS-166", "RS-48")
async def test_a_persons_own_entry_is_withheld_after_a_forget_and_never_rewritten(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 20)
    number = await house.write(chat, 1, 10, "They spoke of the third.")
    await forget(house, chat, "word3")
    await house.plan()
    await house.run("restate-summaries")
    entry = (await house.listing(chat)).entries[0]
    assert (entry.text, entry.enabled, entry.withheld, entry.stale) == ("They spoke of the third.", False, True, True)
    assert await house.desk.switch(chat, OWNER, [number], enabled=True) == 0
    await house.desk.change(chat, OWNER, number, title=None, text="They spoke.")
    assert await house.desk.switch(chat, OWNER, [number], enabled=True) == 1


@pytest.mark.rule("RS-166")
async def test_an_edited_message_makes_its_entry_stale_and_it_is_made_anew(lite: EntryHouse) -> None:
    chat, _ = await generated(lite, 1, 10)
    found = await lite.db.read(lambda c: conversations.window(c, chat, 0))
    await lite.db.write(lambda c: message_changes.correct(c, found[2], "corrected", lite.clock()))
    assert (await lite.listing(chat)).entries[0].stale
    lite.clock.advance(minutes=11)
    await lite.plan()
    await lite.run("restate-summaries")
    entry = (await lite.listing(chat)).entries[0]
    assert ("corrected" in entry.text, entry.stale) == (True, False)


@pytest.mark.rule("RS-44", "RS-90")
async def test_what_leaves_the_window_while_hidden_still_leaves_an_extract(lite: EntryHouse) -> None:
    """Entries stand beside the blocks of trimmed turns: to delete one makes no hole."""
    chat, number = await generated(lite, 1, 10)
    at = await lite.numbers(chat)
    found = await lite.conversation(chat)

    def leave(c: object) -> None:
        trimming.left(c, found, "root", at["word1"], at["word12"], lite.clock())  # pyright: ignore[reportArgumentType]
        conversations.move_edge(c, chat, at["word12"])  # pyright: ignore[reportArgumentType]

    await lite.db.write(leave)
    await lite.desk.delete(chat, OWNER, [number])
    assert "word1" in await lite.stands(chat)
