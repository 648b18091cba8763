"""The model's hand in saved memories: whose lists it writes, what it may touch, and a code for every outcome (SM-4, SM-16, SM-50 to SM-55)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from gateway.saved.place import channels_of
from gateway.saved.tools import told
from memory.database import Database
from memory.saved import journal, store, switches
from memory.saved.lists import Learning, Privacy
from memory.saved.writing import Outcome, Result
from memory.schema import spaces
from tests.conftest import FakeClock
from tests.gateway.saved_house import ANN, BOB, DEN, SavedHouse


@pytest.fixture
def house(sqlite: Database, clock: FakeClock) -> SavedHouse:
    return SavedHouse(sqlite, clock, "cello", "tea")


def code(answer: str) -> str:
    return answer.partition(":")[0]


@pytest.mark.rule("SM-50")
async def test_a_model_without_tools_gets_no_memory_tool_and_still_reads_and_recalls(house: SavedHouse) -> None:
    chat, awake, asleep = house.chat(), house.row("Ann likes tea"), house.row("Ann plays the cello")
    house.sleep(asleep)
    sent = await house.asks(chat, "the cello?", can_call=False)
    assert (sent.turn.tools, sent.head_ids, sent.tail_ids) == ((), [awake], [asleep])
    assert not house.rows()[asleep].dormant
    names = [tool.name for tool in (await house.asks(chat, "the cello?")).turn.tools]
    assert names == ["memory_save", "memory_update", "memory_delete"]


@pytest.mark.rule("SM-51", "SM-52", "SM-15")
@pytest.mark.parametrize("text", ["Ann's birthday is May 3", "アンの誕生日は5月3日", "安的生日是5月3日"])
async def test_a_save_goes_to_the_lists_of_who_is_answered(house: SavedHouse, text: str) -> None:
    private = await house.asks(house.chat(), "remember this")
    assert code(await private.save(text)) == code(await private.save(text, list="global")) == "saved"
    assert code(await private.save(text, list="space")) == "list_not_allowed"
    den = house.den()
    house.said(den, "hello", person=BOB)
    shared = await house.asks(den, "remember this", person=BOB)
    assert code(await shared.save(text)) == code(await shared.save(text, list="space")) == "saved"
    rows = {(str(row.key.kind), row.key.owner): row for row in house.rows().values()}
    assert set(rows) == {("character", ANN), ("global", ANN), ("character", BOB), ("space", DEN)}
    assert all(row.content == text and not row.pinned and not row.protected and row.tags == () for row in rows.values())
    assert [rows[key].private_origin for key in (("character", ANN), ("global", ANN), ("character", BOB), ("space", DEN))] == [
        True,
        True,
        False,
        False,
    ]
    first = rows["character", ANN]
    assert (first.origin, first.author_kind, first.author_id) == ("tool", "model", "scripted")
    assert first.source is not None and first.source["platform"] == "web" and first.source["messages"]


@pytest.mark.rule("SM-52")
async def test_in_a_shared_place_nobody_elses_rows_are_touched(house: SavedHouse) -> None:
    den = house.den()
    anns, bobs, place = house.row("Ann likes tea"), house.row("Bob likes ships", house.key(person=BOB)), house.row("On Fridays", house.key("space"))
    house.said(den, "hello", person=BOB)
    sent = await house.asks(den, "change all of it", person=ANN)
    assert sent.head_ids == sorted([anns, bobs, place])
    assert code(await sent.call("memory_update", id=bobs, content="Bob hates ships")) == "list_not_allowed"
    assert code(await sent.call("memory_delete", id=bobs)) == "list_not_allowed"
    assert code(await sent.call("memory_update", id=place, content="On Mondays")) == "updated"
    assert code(await sent.call("memory_delete", id=anns)) == "deleted"
    assert house.rows()[bobs].content == "Bob likes ships"


def _pinned(house: SavedHouse) -> int:
    return house.row("Call her Annie", pinned=True)


def _protected(house: SavedHouse) -> int:
    return house.row("Ann likes tea", protected=True, author_kind="person")


def _asleep(house: SavedHouse) -> int:
    memory = house.row("Ann likes ships")
    house.sleep(memory)
    return memory


def _others(house: SavedHouse) -> int:
    return house.row("Bob likes ships", house.key(person=BOB))


def _invented(house: SavedHouse) -> int:
    return 4711


@pytest.mark.rule("SM-52", "SM-53", "SM-54", "SM-74")
@pytest.mark.parametrize(
    ("make", "outcome"),
    [(_pinned, "pinned"), (_protected, "updated"), (_asleep, "unknown_id"), (_others, "unknown_id"), (_invented, "unknown_id")],
)
async def test_only_what_was_sent_and_is_not_pinned_can_be_changed(house: SavedHouse, make: Callable[[SavedHouse], int], outcome: str) -> None:
    memory = make(house)
    before = house.rows().get(memory)
    sent = await house.asks(house.chat(), "good morning")
    assert code(await sent.call("memory_update", id=memory, content="something else")) == outcome
    after = house.rows().get(memory)
    if outcome == "updated":
        assert after is not None and after.protected and after.content == "something else"
    else:
        assert after == before


@pytest.mark.rule("SM-53")
async def test_a_row_that_somebody_changed_meanwhile_is_left_and_told(house: SavedHouse) -> None:
    memory = house.row("Ann likes tea")
    sent = await house.asks(house.chat(), "good morning")
    house.do(lambda connection: store.change(connection, memory, "Ann likes green tea", house.clock(), by=ANN, limits=house.limits))
    answer = await sent.call("memory_update", id=memory, content="Ann likes coffee")
    assert code(answer) == "changed" and "Ann likes green tea" in answer
    assert code(await sent.call("memory_delete", id=memory)) == "changed"
    assert house.rows()[memory].content == "Ann likes green tea"


@pytest.mark.rule("SM-4", "SM-52")
async def test_what_it_wrote_itself_can_be_changed_in_the_same_turn_and_is_not_doubled(house: SavedHouse) -> None:
    sent = await house.asks(house.chat(), "good morning")
    assert await sent.save("Ann has a cat") == "saved: It has the number 1."
    assert code(await sent.save("  ann HAS a  cat")) == "unchanged"
    assert code(await sent.call("memory_update", id=1, content="Ann has two cats")) == "updated"
    assert code(await sent.call("memory_delete", id=1)) == "deleted"
    assert house.rows() == {}
    assert house.written == 3


@pytest.mark.rule("SM-52", "RL-30", "RL-31")
async def test_text_of_others_in_the_run_makes_every_change_wait_for_a_yes(house: SavedHouse) -> None:
    memory = house.row("Ann likes tea")
    before = house.rows()
    sent = await house.asks(house.chat(), "what does this page say?")
    house.foreign = True
    for answer in (
        await sent.save("Ann wants to send money"),
        await sent.call("memory_update", id=memory, content="Ann hates tea"),
        await sent.call("memory_delete", id=memory),
    ):
        assert code(answer) == "needs_yes"
    assert house.rows() == before


@pytest.mark.rule("SM-28", "SM-52")
async def test_a_row_that_gave_way_in_the_prompt_was_not_sent(house: SavedHouse) -> None:
    memory = house.row("Ann likes tea")
    sent = await house.asks(house.chat(), "good morning")
    sent.record.rows_left_out = (memory,)
    assert code(await sent.call("memory_delete", id=memory)) == "unknown_id"
    assert (sent.report["sent"], sent.report["gave_way"]) == ([], [memory])


def _nothing(house: SavedHouse) -> None:
    pass


def _no_learning(house: SavedHouse) -> None:
    house.do(lambda connection: switches.set_learning(connection, ANN, house.yume, Learning(learn=False, use=True)))


def _private(house: SavedHouse) -> None:
    house.do(lambda connection: switches.set_privacy(connection, ANN, Privacy.PARTIAL))


def _barred(house: SavedHouse) -> None:
    house.do(lambda connection: switches.set_blacklisted(connection, DEN, ANN, True, house.clock()))


OUTCOMES: list[tuple[str, Callable[[SavedHouse], None], dict[str, Any]]] = [
    ("saved", _nothing, {"content": "Ann has a cat"}),
    ("empty", _nothing, {"content": " \n "}),
    ("too_long", _nothing, {"content": "x" * 501}),
    ("learning_off", _no_learning, {"content": "Ann has a cat"}),
    ("privacy", _private, {"content": "Ann has a cat"}),
    ("blacklisted", _barred, {"content": "Ann has a cat"}),
    ("learning_off", _no_learning, {"content": "A fact of the place", "list": "space"}),
    ("saved", _private, {"content": "A fact of the place", "list": "space"}),
]


@pytest.mark.rule("SM-3", "SM-13", "SM-14", "SM-51", "SM-54", "SM-87")
@pytest.mark.parametrize(("outcome", "prepare", "arguments"), OUTCOMES)
async def test_every_outcome_has_its_code(house: SavedHouse, outcome: str, prepare: Callable[[SavedHouse], None], arguments: dict[str, Any]) -> None:
    prepare(house)
    sent = await house.asks(house.den(), "remember this")
    answer = await sent.call("memory_save", **arguments)
    assert code(answer) == outcome
    assert len(house.rows()) == (outcome == "saved")
    if outcome == "too_long":
        assert "501" in answer and "500" in answer


@pytest.mark.rule("SM-54")
async def test_a_turn_makes_only_so_many_changes(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"saved": {"tool_ops_max": 3}})
    sent = await house.asks(house.chat(), "remember all this")
    assert [code(await sent.save(f"fact {number}")) for number in range(4)] == ["saved", "saved", "saved", "too_many_operations"]


@pytest.mark.rule("SM-54", "SM-93")
async def test_a_store_that_cannot_be_written_is_a_code_and_not_an_end(house: SavedHouse) -> None:
    sent = await house.asks(house.chat(), "remember this")
    house.do(lambda connection: connection.exec_driver_sql("DROP TABLE memory_journal"))
    assert code(await sent.save("Ann has a cat")) == "storage_error"
    assert house.rows() == {}


@pytest.mark.rule("SM-55", "SM-64")
async def test_a_save_that_makes_room_is_journalled_with_what_it_forgot(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"saved": {"unpinned_max": 1}})
    old = house.row("Ann likes tea")
    house.sleep(old)
    sent = await house.asks(house.chat(), "remember this instead")
    answer = await sent.save("Ann has a cat")
    assert code(answer) == "saved" and "forgotten" in answer and "tea" not in answer
    entries = house.do(lambda connection: journal.of_writer(connection, sent.turn.writer))
    assert [(entry.op.value, entry.memory_id) for entry in entries] == [("create", old + 1), ("evict", old)]


@pytest.mark.rule("SM-54")
def test_every_code_says_something_of_its_own() -> None:
    said = {told(Result(outcome=outcome)) for outcome in Outcome}
    assert len(said) == len(Outcome) == 19


@pytest.mark.rule("SM-50")
async def test_a_policy_that_writes_nothing_offers_no_tool(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"policies": {"web": {"write_rows": False}}})
    memory = house.row("Ann likes tea")
    sent = await house.asks(house.chat(), "good morning")
    assert (sent.head_ids, sent.turn.tools) == ([memory], ())


@pytest.mark.rule("SM-16", "SM-15")
async def test_in_a_channel_that_not_all_can_read_rows_are_private_and_stay_there(house: SavedHouse) -> None:
    house.do(lambda connection: connection.execute(sa.update(spaces).values(server_id="the-server")))
    den = house.den()
    sent = await house.asks(den, "remember this")
    await sent.save("Ann likes tea")
    await sent.save("The key is under the mat", list="space")
    own, place = house.rows().values()
    assert own.private_origin and own.channel_ids == ()
    assert not place.private_origin and place.channel_ids == (house.conversation(den).key,)


@pytest.mark.rule("SM-17")
@pytest.mark.parametrize(
    ("key", "channels"),
    [
        ("discord:main:7", ("discord:main:7",)),
        ("discord:main:7:9", ("discord:main:7:9", "discord:main:7")),
        ("telegram:main:-100:5#c-put-aside", ("telegram:main:-100:5", "telegram:main:-100")),
        ("wechat_ilink:main:a%3Ab@im.wechat", ("wechat_ilink:main:a%3Ab@im.wechat",)),
    ],
)
def test_a_thread_is_part_of_its_channel(key: str, channels: tuple[str, ...]) -> None:
    assert channels_of(key) == channels
