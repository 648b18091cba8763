"""What a reply has of saved memories: rows of the head, the one search and its tail, ageing day by day, and what is hidden (SM-9 to SM-43, SM-98)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from memory.database import Database
from memory.saved import store, switches
from memory.saved.found import Searched
from memory.saved.lineages import lineage_of
from memory.saved.lists import Learning, Privacy
from memory.saved.rows import ListKey, Memory, character_list
from tests.conftest import FakeClock
from tests.gateway.saved_house import ANN, BOB, DEN, SavedHouse

# topic, fact, a message about it, messages about other things
LANGUAGES = [
    ("cello", "Ann plays the cello", "How is the cello going?", "What a long game that was"),
    ("Mochi", "Junoの猫の名前はMochi", "Mochiは元気？", "昨日のゲームは長かった"),
    ("大提琴", "安会拉大提琴", "大提琴练得怎么样了？", "昨天那局游戏真长"),
]


@pytest.fixture
def house(sqlite: Database, clock: FakeClock) -> SavedHouse:
    return SavedHouse(sqlite, clock, "cello", "tea", "ship", "garden")


# -- day by day --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-35", "SM-36", "SM-37", "SM-38", "SM-40", "SM-41", "SM-43")
@pytest.mark.parametrize(("topic", "fact", "about_it", "other"), LANGUAGES)
async def test_a_memory_that_nobody_needs_falls_asleep_and_is_recalled(
    database: Database, clock: FakeClock, topic: str, fact: str, about_it: str, other: str
) -> None:
    house = SavedHouse(database, clock, topic)
    chat, memory = house.chat(), house.row(fact)

    def state() -> tuple[int, bool]:
        row = house.rows()[memory]
        return row.unused_days, row.dormant

    await house.asks(chat, other)
    assert state() == (0, False), "the day it was saved never counts"
    for day in range(1, 7):
        clock.advance(days=1)
        for number in range(3):
            sent = await house.asks(chat, f"{other} {number}")
            assert memory in sent.head_ids
        assert state() == (day, False), "one tick a day, however much is said"
    clock.advance(days=7)
    assert state() == (6, False), "silence changes nothing"
    falling = await house.asks(chat, other)
    assert state() == (7, True)
    assert (falling.head_ids, falling.tail_ids) == ([memory], []), "it is still in the head of this reply"
    gone = await house.asks(chat, f"{other}!")
    assert (gone.head_ids, gone.tail_ids) == ([], [])
    assert fact not in gone.head + gone.tail
    clock.advance(days=1)
    recalled = await house.asks(chat, about_it)
    assert (recalled.head_ids, recalled.tail_ids) == ([], [memory])
    assert fact in recalled.tail and recalled.report["sent"] == [{"id": memory, "list": "character", "why": "recalled"}]
    assert state() == (0, False)
    again = await house.asks(chat, other)
    assert (again.head_ids, again.tail_ids) == ([memory], [])
    assert state() == (0, False), "a day with a match ends at 0"


@pytest.mark.rule("SM-42", "SM-10")
async def test_a_persons_memories_age_on_the_days_of_their_own_visits(house: SavedHouse) -> None:
    den = house.den()
    bobs, place = house.row("Bob likes ships", house.key(person=BOB)), house.row("The den meets on Friday", house.key("space"))
    await house.asks(den, "hello everybody", person=BOB)
    for _ in range(8):
        house.clock.advance(days=1)
        await house.asks(den, "talk of the day", person=ANN)
    rows = house.rows()
    assert rows[bobs].unused_days == 0, "Bob is in the window, and said nothing today"
    assert rows[place].dormant, "the place aged on every day on which something was said in it"
    den.log.clear()
    for _ in range(7):
        house.clock.advance(days=30)
        sent = await house.asks(den, "back again", person=BOB)
        assert bobs in sent.head_ids
        den.log.clear()
    assert house.rows()[bobs].dormant, "seven visits"


@pytest.mark.rule("SM-10")
async def test_the_rows_of_who_is_absent_do_not_count_not_even_pins(house: SavedHouse) -> None:
    den = house.den()
    pin = house.row("Call Bob Captain", house.key(person=BOB), pinned=True)
    assert pin not in (await house.asks(den, "hello")).head_ids
    house.said(den, "hi from Bob", person=BOB)
    assert pin in (await house.asks(den, "hello")).head_ids


# -- head and tail -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-25", "SM-27")
async def test_the_head_keeps_its_bytes_and_changes_once_after_a_move(house: SavedHouse) -> None:
    chat, cello, tea = house.chat(), house.row("Ann plays the cello"), house.row("Ann likes tea", house.key("global"))
    pin = house.row("Call her Annie", pinned=True)
    house.clock.advance(days=8)  # no recent marks
    heads: list[str] = []
    for day in range(9):
        for text in ("tea is nice", "more tea, please"):
            sent = await house.asks(chat, text)
            heads.append(sent.head)
            assert not set(sent.head_ids) & set(sent.tail_ids)
        if day < 8:
            house.clock.advance(days=1)
    assert [one == other for one, other in pairwise(heads)].count(False) == 1
    assert house.rows()[cello].dormant and not house.rows()[tea].dormant
    recalled = await house.asks(chat, "and the cello?")
    assert (recalled.head, recalled.tail_ids) == (heads[-1], [cello])
    after = await house.asks(chat, "tea again")
    assert after.head == heads[0]
    assert pin in after.head_ids


@pytest.mark.rule("SM-20", "SM-21", "SM-32")
async def test_rows_without_a_place_stay_searchable_and_pins_take_none(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, "cello", config={"policies": {"web": {"head_rows": 3}}})
    chat, old = house.chat(), house.row("Ann plays the cello")
    clock.advance(minutes=1)
    newer = [house.row(f"fact {number}") for number in range(3)]
    pins = [house.row(f"pin {number}", pinned=True) for number in range(4)]
    sent = await house.asks(chat, "the cello again")
    assert sent.head_ids == sorted([*newer, *pins])
    assert sent.tail_ids == [old]
    other = await house.asks(chat, "something else entirely")
    assert (other.tail_ids, other.report["left_out"]) == ([], [old])


@pytest.mark.rule("SM-9", "SM-26")
async def test_a_group_chat_reads_the_lists_of_every_member_and_of_nobody_else(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"characters": {"luna": {"name": "Luna"}, "sora": {"name": "Sora"}}})
    lunas, soras = (house.do(lambda connection, each=each: _lineage(connection, each, clock)) for each in ("luna", "sora"))
    own, of_luna = house.row("told to Yume"), house.row("told to Luna", _mine(lunas))
    of_sora = house.row("told to Sora", _mine(soras))
    alone = await house.asks(house.chat(), "hello there")
    assert alone.head_ids == [own]
    together = await house.asks(house.chat(characters=["default", "luna"]), "hello there")
    assert together.head_ids == [own, of_luna]
    assert "About the person and Luna:\n" in together.head
    assert of_sora not in together.head_ids


# -- the one search ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-29")
async def test_a_reply_asks_the_embedder_once_for_all_that_it_searches(house: SavedHouse) -> None:
    chat = house.chat()
    house.row("Ann plays the cello")
    await house.settle()
    house.model.asked.clear()
    start = house.start(chat, "  the cello?  ")
    query = house.turns.query(start, "documents are searched with this")
    assert house.embedder is not None
    asker = (await house.prepared(start)).turn  # a query of its own
    assert asker.found.ok and len(house.model.asked) == 1
    house.model.asked.clear()
    one, two = await asyncio.gather(query.vector(house.embedder, "the cello?"), query.vector(house.embedder, "documents are searched with this"))
    assert one is not None and two is not None
    assert house.model.asked == [["the cello?", "documents are searched with this"]]


def _sticker(house: SavedHouse) -> str:
    return ""


def _short(house: SavedHouse) -> str:
    return "ok"


def _broken(house: SavedHouse) -> str:
    house.model.broken = True
    return "what about the cello?"


@pytest.mark.rule("SM-30", "SM-34", "SM-41", "SM-93")
@pytest.mark.parametrize(("trouble", "mode"), [(_sticker, Searched.NONE), (_short, Searched.NONE), (_broken, Searched.FAILED)])
async def test_without_a_search_there_is_a_reply_and_no_counter_changes(
    house: SavedHouse, trouble: Callable[[SavedHouse], str], mode: Searched
) -> None:
    chat, cello, tea = house.chat(), house.row("Ann plays the cello"), house.row("Ann likes tea")
    house.sleep(cello)
    await house.asks(chat, "good morning")
    before = house.rows()
    house.clock.advance(days=1)
    text = trouble(house)
    for _ in range(3):
        sent = await house.asks(chat, text)
        assert sent.turn.found.mode is mode
        assert (sent.head_ids, sent.tail_ids) == ([tea], [])
    assert house.rows() == before


@pytest.mark.rule("SM-30")
async def test_a_turn_of_the_system_reads_and_searches_nothing(house: SavedHouse) -> None:
    chat, memory = house.chat(), house.row("Ann plays the cello")
    start = house.start(chat, "x")
    house.clock.advance(days=1)
    await house.settle()
    house.model.asked.clear()
    sent = await house.prepared(replace(start, questions=()))
    assert (sent.head_ids, sent.turn.found.mode, house.model.asked) == ([memory], Searched.NONE, [])
    assert house.rows()[memory].unused_days == 0


@pytest.mark.rule("SM-34")
async def test_a_full_list_is_not_written_while_the_search_fails(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, "cello", config={"saved": {"unpinned_max": 2}})
    chat, old = house.chat(), house.row("Ann plays the cello")
    house.row("Ann likes tea")
    house.sleep(old)
    house.model.broken = True
    sent = await house.asks(chat, "remember this, please")
    assert (await sent.save("Ann has a cat")).startswith("search_unavailable:")
    house.model.broken = False
    sent = await house.asks(chat, "remember this, please")
    assert (await sent.save("Ann has a cat")).startswith("saved:")
    assert old not in house.rows()


# -- ageing switched off ------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-97", "SM-98")
async def test_with_ageing_off_all_rows_count_as_active_and_nothing_moves(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, "cello", config={"saved": {"ageing": False, "unpinned_max": 2}, "policies": {"web": {"head_rows": 1}}})
    chat, asleep = house.chat(), house.row("Ann plays the cello")
    clock.advance(minutes=1)
    newer = house.row("Ann likes tea")
    house.sleep(asleep)
    before = house.rows()
    clock.advance(days=3)
    sent = await house.asks(chat, "what about the cello?")
    assert (sent.head_ids, sent.tail_ids) == ([newer], [asleep]), "what has no place may still be matched"
    assert house.rows() == before, "and keeps its flags and counters"
    assert (await sent.save("Ann has a cat")).startswith("list_full:")


@pytest.mark.rule("SM-98")
async def test_without_an_embedder_everything_is_sent(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, embedder=False)
    chat, asleep, awake = house.chat(), house.row("Ann plays the cello"), house.row("Ann likes tea")
    house.sleep(asleep)
    before = house.rows()
    clock.advance(days=1)
    sent = await house.asks(chat, "what about the cello?")
    assert (sent.head_ids, sent.turn.found.mode) == ([asleep, awake], Searched.OFF)
    assert house.rows() == before


# -- what is hidden -----------------------------------------------------------------------------------------------------


def _learning_off(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: switches.set_learning(c, ANN, house.yume, Learning(learn=False, use=False)))


def _private(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: switches.set_privacy(c, ANN, Privacy.PARTIAL))


def _blacklisted(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: switches.set_blacklisted(c, DEN, ANN, True, house.clock()))


def _private_origin(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: store.set_private(c, memory, True))


def _other_channel(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: store.set_channels(c, memory, ["discord:main:elsewhere"]))


def _tagged(house: SavedHouse, memory: int) -> None:
    house.do(lambda c: store.set_tags(c, memory, ["lighthouse"]))


@pytest.mark.rule("SM-11", "SM-12", "SM-13", "SM-14", "SM-15", "SM-17", "SM-18", "SM-87")
@pytest.mark.parametrize("hide", [_learning_off, _private, _blacklisted, _private_origin, _other_channel, _tagged])
async def test_a_hidden_row_is_not_sent_aged_recalled_or_changed(house: SavedHouse, hide: Callable[[SavedHouse, int], None]) -> None:
    den, memory = house.den(), house.row("Ann plays the cello")
    pin = house.row("Call her Annie", pinned=True)
    assert sorted((await house.asks(den, "good morning")).head_ids) == [memory, pin]
    house.sleep(memory)
    for each in (memory, pin):
        hide(house, each)
    before = house.rows()
    house.clock.advance(days=2)
    sent = await house.asks(den, "what about the cello?")
    assert memory not in sent.head_ids + sent.tail_ids and "cello" not in sent.head + sent.tail
    assert (pin in sent.head_ids) == (hide is _tagged), "hiding beats pinning, tags apart"
    assert _aged(house.rows()[memory]) == _aged(before[memory])
    for name, more in (("memory_update", {"content": "Ann plays the drums"}), ("memory_delete", {})):
        code = (await sent.call(name, id=memory, **more)).partition(":")[0]
        assert code in ("unknown_id", "learning_off", "blacklisted")
    assert house.rows()[memory].content == "Ann plays the cello"
    hidden = {each["why"]: each for each in sent.report["hidden"]}
    assert sum(each["count"] for each in hidden.values()) == (1 if hide is _tagged else 2)
    assert all(each["ids"] == [] for each in hidden.values()), "in a shared place hidden rows are counted, not named"


@pytest.mark.rule("SM-88", "SM-89", "SM-11")
@pytest.mark.parametrize("where", ["challenge", "memory off", "signed out"])
async def test_where_nothing_is_remembered_nothing_is_read_and_there_is_no_tool(house: SavedHouse, where: str) -> None:
    house.row("Ann plays the cello")
    house.row("Call her Annie", house.key("global"), pinned=True)
    chat = house.chat(kind="challenge") if where == "challenge" else house.chat(memory_on=where != "memory off")
    await house.settle()
    house.model.asked.clear()
    start = house.start(chat, "what about the cello?")
    if where == "signed out":
        start = replace(start, person={}, scope="")
    before = house.rows()
    house.clock.advance(days=1)
    sent = await house.prepared(start)
    assert (sent.texts, sent.turn.tools, house.model.asked) == (("", ""), (), [])
    assert house.rows() == before
    assert sent.report["sent"] == sent.report["hidden"] == []


def _aged(memory: Memory) -> tuple[Any, ...]:
    return memory.unused_days, memory.dormant, memory.last_tick_day, memory.last_matched_at


def _lineage(connection: sa.Connection, name: str, clock: FakeClock) -> str:
    return lineage_of(connection, name, name.title(), clock())


def _mine(lineage: str) -> ListKey:
    return character_list(ANN, lineage)


@pytest.mark.rule("SM-42")
async def test_a_message_of_yesterday_that_is_answered_after_midnight_lets_nothing_age(house: SavedHouse) -> None:
    chat, memory = house.chat(), house.row("Ann plays the cello")
    await house.asks(chat, "good evening")
    house.clock.now = house.clock.now.replace(hour=23, minute=59)
    start = house.start(chat, "one more thing")
    house.clock.advance(minutes=2)
    sent = await house.prepared(start)
    assert sent.turn.found.ok and house.rows()[memory].unused_days == 0
    await house.asks(chat, "good morning")
    assert house.rows()[memory].unused_days == 1
