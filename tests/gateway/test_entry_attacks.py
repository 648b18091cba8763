"""Attacks on a chat's entries: words that were taken away, private parts that cannot be read, numbers that are none, two who change at once."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import trimming, windows
from gateway.entries.desk import NoSuchTemplate
from memory import conversations, message_changes, whole_conversations
from memory.database import Database
from memory.recall import edge_jump
from memory.recall.kinds import Kind
from memory.recall.summary_rows import State
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse, living
from tests.gateway.nights import OWNER

SECRET = "the-code-is-4821"


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(database, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def lite(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(sqlite, tmp_path, clock) as made:
        yield made


async def forget(house: EntryHouse, chat: str, text: str) -> None:
    found = await house.db.read(lambda c: conversations.window(c, chat, 0))
    [message] = [each for each in found if each.text == text]

    def work(c: sa.Connection) -> None:  # as a platform's deletion
        message_changes.forget(c, message.id)
        trimming.changed(c, chat, message.seq, message.seq, house.clock())

    await house.db.write(work)


async def restate(house: EntryHouse) -> None:
    await house.plan()
    await house.run("restate-summaries")


async def merged(house: EntryHouse) -> tuple[str, int, list[int]]:
    """A chat with one merged entry, made from others of which one tells of the secret: the merged one, and the others."""
    await house.set(context={"memory_budget": 64, "memory_overrun": 0})  # no room for two
    chat = await house.made()
    await house.talk(chat, 4)
    await house.says(chat, SECRET)
    await house.talk(chat, 20, first=6)
    await house.configure(chat, last_n=5, hide=True, tail=0)
    await house.desk.backfill(chat)
    await house.make()
    await house.set(context={"memory_budget": 6_500, "memory_overrun": 2_000})
    rows = (await house.listing(chat)).entries
    [whole] = [each.id for each in rows if each.enabled]
    assert SECRET in await house.stands(chat)
    return chat, whole, [each.id for each in rows if each.replaced]


# -- words that were taken away ------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-189", "RS-95")
async def test_what_a_merged_entry_was_made_from_brings_no_forgotten_word_back(house: EntryHouse) -> None:
    chat, _, below = await merged(house)
    await forget(house, chat, SECRET)
    await house.desk.switch(chat, OWNER, below, enabled=True)
    assert SECRET not in await house.prompt(chat)
    await restate(house)
    assert SECRET not in await house.prompt(chat)
    assert all(SECRET not in row.text for row in await house.rows(chat, Kind.ENTRY, states=tuple(State)))
    assert all(each.enabled or each.replaced for each in (await house.listing(chat)).entries), "what was switched on is made anew, and counts"


@pytest.mark.rule("RS-189", "RS-95")
@pytest.mark.parametrize("order", ["forget first", "delete first"])
async def test_deleting_a_merged_entry_leaves_no_forgotten_word_below_it(house: EntryHouse, order: str) -> None:
    chat, whole, _ = await merged(house)
    if order == "forget first":
        await forget(house, chat, SECRET)
    await house.desk.delete(chat, OWNER, [whole])
    if order == "delete first":
        await forget(house, chat, SECRET)
    await house.desk.switch(chat, OWNER, None, enabled=True)
    assert SECRET not in await house.prompt(chat)
    await restate(house)
    assert SECRET not in await house.prompt(chat)
    assert all(SECRET not in row.text for row in await house.rows(chat, Kind.ENTRY, states=tuple(State)))


@pytest.mark.rule("RS-189", "RS-166")
@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_withheld_entry_is_not_let_out_by_a_new_title(house: EntryHouse, by_hand: bool) -> None:
    chat = await house.made()
    await house.talk(chat, 4)
    await house.says(chat, SECRET)
    await house.talk(chat, 20, first=6)
    await house.configure(chat, hide=True, tail=0)
    if by_hand:
        number = await house.write(chat, 1, 10, f"They said {SECRET}.")
    else:
        await house.desk.generate(chat, OWNER, first=1, to=10)
        await house.make()
        [number] = [each.id for each in (await house.listing(chat)).entries]
    await forget(house, chat, SECRET)
    await house.desk.change(chat, OWNER, number, title="The beginning", text=None)
    await house.desk.switch(chat, OWNER, [number], enabled=True)
    assert SECRET not in await house.prompt(chat)
    [shown] = (await house.listing(chat)).entries
    await house.desk.change(chat, OWNER, number, title="The beginning", text=shown.text)  # as a page sends what was not touched
    await house.desk.switch(chat, OWNER, [number], enabled=True)
    assert SECRET not in await house.prompt(chat)
    await house.desk.change(chat, OWNER, number, title=None, text="They said something.")
    await house.desk.switch(chat, OWNER, [number], enabled=True)
    assert "They said something." in await house.stands(chat)


@pytest.mark.rule("RS-189", "RS-95")
async def test_what_stands_below_an_entry_that_is_never_made_anew_says_nothing_of_it_either(house: EntryHouse) -> None:
    """One that is off, and one in a person's own words."""
    for by_hand in (False, True):
        chat, whole, _ = await merged(house)
        if by_hand:
            await house.desk.change(chat, OWNER, whole, title=None, text="In my own words.")
        else:
            await house.desk.switch(chat, OWNER, [whole], enabled=False)
        await forget(house, chat, SECRET)
        await restate(house)
        assert all(SECRET not in row.text for row in await house.rows(chat, Kind.ENTRY, states=tuple(State)))


@pytest.mark.rule("RS-166", "RS-95")
async def test_what_is_stale_is_not_merged_before_it_was_made_anew(lite: EntryHouse) -> None:
    """Else the merged entry would say for good what was corrected."""
    chat = await lite.made()
    await lite.talk(chat, 15)
    await lite.configure(chat, last_n=5, hide=True, tail=0)
    await lite.desk.backfill(chat)
    await lite.make()
    found = await lite.db.read(lambda c: conversations.window(c, chat, 0))
    await lite.db.write(lambda c: message_changes.correct(c, found[2], "corrected", lite.clock()))
    await lite.set(context={"memory_budget": 64, "memory_overrun": 0})
    await lite.desk.switch(chat, OWNER, [], enabled=True)
    await lite.make()
    await lite.set(context={"memory_budget": 6_500, "memory_overrun": 2_000})
    lite.clock.advance(minutes=11)
    await restate(lite)
    await lite.make()
    assert await lite.words_sent(chat) == []
    told = await lite.stands(chat)
    assert "corrected" in told
    assert "word3 " not in told


# -- an emptied context ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-68", "RS-92")
@pytest.mark.parametrize("profile", ["calendar", "companion", "assistant"])
@pytest.mark.parametrize("how", ["copied", "moved"])
async def test_what_was_cleared_stays_so_where_the_talk_goes(lite: EntryHouse, profile: str, how: str) -> None:
    lite.profile = profile
    chat = await lite.made()
    await lite.talk(chat, 12)
    await lite.says(chat, SECRET)
    await lite.db.write(lambda c: empty(c, chat))
    await lite.talk(chat, 6, first=21)
    if how == "copied":
        of = conversations.ConversationId("c-copycopycopy")
        source = await lite.conversation(chat)
        await lite.db.write(lambda c: whole_conversations.fork(c, source, key="web::copy", new_id=of, up_to_seq=2**40, title="", now=lite.clock()))
    else:
        of = await lite.made()
        await lite.talk(of, 2, first=31)
        await lite.db.write(lambda c: conversations.change(c, chat, key="telegram:bot:old"))
        await lite.db.write(lambda c: conversations.change(c, of, key="telegram:bot:new"))
        await lite.db.write(lambda c: whole_conversations.move(c, old="telegram:bot:old", new="telegram:bot:new"))
    assert SECRET not in await lite.prompt(of)
    assert (await lite.listing(of)).uncovered == (6 if how == "copied" else 8)
    await lite.configure(of, last_n=5)
    await lite.desk.backfill(of)
    await lite.make()
    assert all(SECRET not in row.text for row in await lite.rows(of, Kind.ENTRY))


# -- private parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-93", "RS-92")
async def test_what_a_model_writes_in_double_braces_hides_nothing(lite: EntryHouse) -> None:
    """Of talk about templates, or because a message asked for it: the rest of the recap would be nobody's while its messages are hidden."""
    lite.script = lambda request: json.dumps({"title": "T", "text": "Ada asked what {{{#if x}} does; {{/if}} ends it; they meet at noon."})
    chat = await lite.made()
    await lite.talk(chat, 20)
    await lite.configure(chat, hide=True, tail=0, last_n=5)
    await lite.desk.backfill(chat)
    await lite.make()
    assert "they meet at noon" in await lite.stands(chat)
    await lite.set(context={"memory_budget": 64, "memory_overrun": 0})
    await lite.desk.switch(chat, OWNER, [], enabled=True)
    assert await lite.make() == ["merge"]
    assert "they meet at noon" in (await lite.rows(chat, Kind.ENTRY))[0].text
    assert "{{" not in (await lite.rows(chat, Kind.ENTRY))[0].text


# -- signs that no store keeps, and cuts ------------------------------------------------------------------------------------


@pytest.mark.rule("RS-194", "RS-168")
async def test_a_model_s_answer_with_signs_that_no_store_keeps_is_kept_without_them(house: EntryHouse) -> None:
    house.script = lambda request: '{"title": "A\\u0000 title \\ud83d", "text": "They \\udc00met\\u0000 at noon."}'
    chat = await house.made()
    await house.talk(chat, 10)
    await house.desk.generate(chat, OWNER, first=1, to=10)
    await house.make()
    [entry] = (await house.listing(chat)).entries
    assert "met" in entry.text
    assert not {"\0", "\ud83d"}.intersection(entry.text + entry.title)


@pytest.mark.rule("RS-171")
@pytest.mark.parametrize("sign", ["👩‍👩‍👧‍👦", "🇯🇵", "が", "e\u0301", "葛\U000e0100"])
async def test_no_cut_parts_what_people_see_as_one_sign(lite: EntryHouse, sign: str) -> None:
    chat = await lite.made()
    await lite.talk(chat, 10)
    for lead in range(len(sign)):
        made = await lite.desk.write(chat, OWNER, title="x" * lead + sign * 200, text="", last=5)
        assert len(made.title) <= 200
        assert made.title.removesuffix("…").lstrip("x").replace(sign, "") == ""
    lite.script = lambda request: json.dumps({"title": sign * 200, "text": "They met."})
    await lite.desk.generate(chat, OWNER, first=1, to=10)
    await lite.make()
    [title] = [each.title for each in (await lite.listing(chat)).entries if each.text]
    assert title.removesuffix("…").replace(sign, "") == ""


# -- numbers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-88")
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, -1, 10**30])
async def test_a_template_that_no_row_can_have_is_none(house: EntryHouse, number: int) -> None:
    chat = await house.made()
    with pytest.raises(NoSuchTemplate):
        await house.configure(chat, template_id=number)


@pytest.mark.rule("RS-83")
@pytest.mark.parametrize("number", [2**63, -(2**70)])
async def test_an_entry_that_no_row_can_be_is_none(house: EntryHouse, number: int) -> None:
    chat = await house.made()
    assert await house.desk.switch(chat, OWNER, [number], enabled=True) == 0
    assert await house.desk.delete(chat, OWNER, [number]) == 0
    assert not await house.desk.decide(chat, OWNER, number, accept=True)


# -- two at once -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-86", "RS-68")
async def test_settings_that_two_write_at_once_are_both_kept(house: EntryHouse) -> None:
    """A jump of the window, its way back, and what a person sets, all lie in one column."""
    chat = await house.made()
    await house.talk(chat, 20)
    at = sorted((await house.numbers(chat)).values())
    for n in range(8):
        await house.change(chat, settings=None)
        await asyncio.gather(
            house.configure(chat, tail=n + 1), house.db.write(lambda c, n=n: jump(c, chat, at[n + 1])), house.configure(chat, review=True)
        )
        kept = (await house.conversation(chat)).settings
        assert {"entries.tail", "entries.review", edge_jump.KEY} <= kept.keys()
        await asyncio.gather(house.configure(chat, every=n + 1), house.db.write(lambda c: edge_jump.undo(c, chat)))
        kept = (await house.conversation(chat)).settings
        assert {"entries.tail", "entries.review", "entries.every", edge_jump.KEY} <= kept.keys()


def jump(connection: sa.Connection, chat: str, edge: int) -> None:
    found = conversations.conversation(connection, chat)
    assert found is not None
    edge_jump.jump(connection, found, edge)


def empty(connection: sa.Connection, chat: str) -> None:
    """As `/clear` does."""
    conversations.clear_context(connection, chat)
    now = conversations.conversation(connection, chat)
    assert now is not None
    conversations.change_settings(connection, chat, {conversations.CLEARED: now.window_edge})


# -- everything in random order --------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-72", "RS-90", "RS-92", "RS-94", "RS-68", "RS-189")
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_done_in_whatever_order_each_message_is_sent_or_told_and_a_forgotten_one_never(lite: EntryHouse, seed: int) -> None:
    chance, gone = random.Random(seed), set[int]()
    lite.profile = chance.choice(["assistant", "companion", "calendar"])
    chat = await lite.made()
    await lite.talk(chat, 40)
    at = await lite.numbers(chat)
    for _ in range(16):
        ids = [each.id for each in (await lite.listing(chat)).entries]
        some = chance.sample(ids, min(len(ids), 2))
        match chance.randrange(9):
            case 0:
                await lite.desk.generate(chat, OWNER, first=(first := chance.randrange(1, 30)), to=first + chance.randrange(5))
                await lite.make()
            case 1:
                first, last = sorted(chance.sample(range(1, 39 - len(gone)), 2))
                there = [n for n in range(1, 41) if n not in gone]
                await lite.write(chat, first, last, " ".join(f"word{n}" for n in there[first - 1 : last]))
            case 2:
                await lite.desk.delete(chat, OWNER, some)
            case 3:
                await lite.desk.switch(chat, OWNER, some or None, enabled=chance.random() < 0.6)
            case 4:
                await lite.configure(chat, hide=chance.random() < 0.8, tail=chance.choice([0, 1, 7, 50]))
            case 5:
                edge = at[f"word{chance.randrange(1, 30)}"]
                await lite.db.write(lambda c, edge=edge: leave(c, lite, chat, edge))
            case 6:
                await lite.db.write(lambda c: edge_jump.undo(c, chat))
            case 7:
                n = chance.choice([n for n in range(1, 41) if n not in gone])
                await forget(lite, chat, f"word{n}")
                gone.add(n)
            case _:
                await restate(lite)
                await lite.make()
        prompt = set(re.findall(r"\bword(\d+)\b", await lite.prompt(chat)))
        edge = (await lite.conversation(chat)).window_edge
        assert not prompt & {str(n) for n in gone}, "what was forgotten"
        assert {str(n) for n in range(1, 41) if at[f"word{n}"] > edge and n not in gone} <= prompt, "what is neither sent nor told"


def leave(connection: sa.Connection, house: EntryHouse, chat: str, edge: int) -> None:
    """As the edge leaves at the ceiling."""
    found = conversations.conversation(connection, chat)
    assert found is not None
    if edge > found.window_edge:
        into = windows.into_at_the_ceiling(house.config, found)
        trimming.left(connection, found, "root", found.window_edge + 1, edge, house.clock(), into=into)
        edge_jump.jump(connection, found, edge)
