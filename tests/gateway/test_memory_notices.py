"""What people hear of saved memories that a turn changed (SM-55, SM-61 to SM-63)."""

from __future__ import annotations

import asyncio

import pytest

from channels.loopback import CAPABILITIES
from gateway.config import Config
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.replies import Replies
from gateway.language import LANGUAGES
from gateway.memory_notices import TEXT_MAX, Changed, MemoryNotices, changes, level_of, words
from gateway.streams import Streams
from memory.database import Database
from memory.saved import journal
from memory.saved.journal import Op
from memory.saved.policy import OFF, Notice
from tests.conftest import FakeClock
from tests.gateway.saved_house import BOB, SavedHouse, Sent
from tests.memory.saved.places import ON

KINDS = (Op.CREATE, Op.UPDATE, Op.DELETE, Op.EVICT)


def changed(op: Op, text: str = "Ann likes tea") -> Changed:
    return Changed(op=op, memory_id=1, text=text, entry=1, by_person=False)


@pytest.mark.rule("SM-61")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_full_notice_names_each_text_and_a_short_one_counts(language: str) -> None:
    found = [changed(op, f"text {op}") for op in KINDS]
    full = words(found, Notice.FULL, language)
    assert len(full.splitlines()) == 4
    assert all(f"text {op}" in line for op, line in zip(KINDS, full.splitlines(), strict=True))
    short = words([*found, changed(Op.CREATE)], Notice.SHORT, language)
    assert len(short.splitlines()) == 1 and "text" not in short
    assert short.count("1") == 3 and short.count("2") == 1
    for level in (Notice.HIDDEN, Notice.NONE, Notice.RESULT):
        assert words(found, level, language) == ""
    assert words([], Notice.FULL, language) == ""


@pytest.mark.rule("SM-61")
@pytest.mark.parametrize("letter", ["a", "お", "茶", "🍵"])
def test_long_texts_are_cut_at_two_hundred_code_points(letter: str) -> None:
    assert letter * TEXT_MAX in words([changed(Op.CREATE, letter * TEXT_MAX)], Notice.FULL, "en")
    cut = words([changed(Op.CREATE, letter * (TEXT_MAX + 1))], Notice.FULL, "en")
    assert cut.count(letter) - "Remembered".count(letter) == TEXT_MAX - 1 and cut.endswith("…")


@pytest.mark.rule("SM-62")
def test_a_chat_may_choose_but_nobody_is_told_where_the_policy_tells_nobody() -> None:
    assert level_of(ON, "hidden") is Notice.HIDDEN
    assert level_of(ON, "full") is Notice.FULL
    assert level_of(ON, None) is level_of(ON, "loud") is Notice.TOAST
    assert level_of(OFF, "full") is Notice.NONE


async def told(house: SavedHouse, sent: Sent) -> tuple[Changed, ...]:
    entries = house.do(lambda connection: journal.of_writer(connection, sent.turn.writer))
    return changes(entries, sent.turn.where)


@pytest.mark.rule("SM-61")
async def test_what_was_made_and_removed_in_one_turn_is_not_told(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock)
    tea = house.row("Ann likes tea")
    sent = await house.asks(house.chat(), "good morning")
    await sent.save("Ann has a cat")
    await sent.call("memory_update", id=tea + 1, content="Ann has two cats")
    await sent.save("Ann has a dog")
    await sent.call("memory_delete", id=tea + 2)
    await sent.call("memory_update", id=tea, content="Ann likes green tea")
    assert [(each.op, each.text) for each in await told(house, sent)] == [
        (Op.CREATE, "Ann has two cats"),
        (Op.UPDATE, "Ann likes green tea"),
    ]


@pytest.mark.rule("SM-63")
async def test_a_forgotten_row_that_is_hidden_in_a_place_is_not_named_there(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"saved": {"unpinned_max": 1}})
    hidden = house.row("Bob's secret", house.key(person=BOB), private_origin=True)
    house.sleep(hidden)
    sent = await house.asks(house.den(), "remember that I sail", person=BOB)
    assert (await sent.save("Bob sails")).startswith("saved")
    found = await told(house, sent)
    assert [(each.op, each.text) for each in found] == [(Op.CREATE, "Bob sails"), (Op.EVICT, "")]
    for language in LANGUAGES:
        text = words(found, Notice.FULL, language)
        assert "secret" not in text and "Bob sails" in text and len(text.splitlines()) == 2


@pytest.mark.rule("SM-61", "SM-63")
async def test_a_forgotten_row_that_may_be_seen_is_named_and_a_persons_row_offers_undo(sqlite: Database, clock: FakeClock) -> None:
    house = SavedHouse(sqlite, clock, config={"saved": {"unpinned_max": 2}})
    old = house.row("Ann likes tea")
    own = house.row("Ann is called Annie", author_kind="person", protected=True)
    house.sleep(old)
    sent = await house.asks(house.chat(), "good morning")
    await sent.save("Ann has a cat")
    await sent.call("memory_update", id=own, content="Ann is called Nana")
    found = await told(house, sent)
    assert [(each.op, each.text, each.by_person) for each in found] == [
        (Op.CREATE, "Ann has a cat", False),
        (Op.EVICT, "Ann likes tea", False),
        (Op.UPDATE, "Ann is called Nana", True),
    ]
    assert "memory panel" in words(found, Notice.SHORT, "en").splitlines()[-1]


@pytest.mark.rule("SM-55", "SM-62", "SM-93")
async def test_a_notice_that_cannot_be_told_leaves_what_was_saved(sqlite: Database, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    house = SavedHouse(sqlite, clock)
    outbox = Outbox(
        db=sqlite, clock=clock, gates=Gates(), find_channel=lambda _account: None, group=asyncio.TaskGroup(), marked_text=lambda part: part.part.text
    )  # fmt: skip
    replies = Replies(outbox, can=lambda _account: CAPABILITIES, limits=lambda: Config().delivery)
    notices = MemoryNotices(db=sqlite, clock=clock, replies=replies, streams=Streams())
    start = house.start(house.chat(kind="dm", channel="telegram"), "remember this")
    sent = await house.prepared(start)
    assert (await sent.save("Ann likes tea")).startswith("saved")
    house.do(lambda connection: connection.exec_driver_sql("DROP TABLE outbox"))
    await notices.after(start, sent.turn, language="en")
    assert "could not be told" in caplog.text and "tea" not in caplog.text
    assert [row.content for row in house.rows().values()] == ["Ann likes tea"]
