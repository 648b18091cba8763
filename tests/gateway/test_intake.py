"""What an adapter delivers is stored, whole or not at all, before anything is made of it (CH-2 to CH-10, CH-50 to CH-53, CH-110 to CH-121)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from channels.message import Attachment, ChatType, EventKind, InboundEvent, ReplyTo
from channels.port import Arrival, Cursor, OutboundPart
from channels.web.adapter import CAPABILITIES as PAGE
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.arrivals.intake import receive
from gateway.delivery import outbox_store
from gateway.delivery.outbox_store import NewPart
from memory import conversations, schema
from memory.database import Database
from memory.errors import StoreUnavailable
from tests.conftest import FakeClock
from tests.gateway.arrivals import ACCOUNT, EVERYBODY, Door, event, in_group, words


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


# Stored once


@pytest.mark.rule("CH-10", "CH-53")
async def test_a_first_message_makes_its_person_its_chat_and_its_turn(door: Door) -> None:
    received = await door.one(event("hello"))
    accepted = received.accepted
    assert (accepted.arrival, accepted.state, accepted.rule) == (Arrival.NEW, "new", "")
    assert await door.rows("messages", "text", "role", "turn_id") == [("hello", "user", accepted.turn_id)]
    assert await door.rows("inbox", "delivery_id", "state", "message_id") == [(accepted.delivery_id, "new", accepted.message_id)]
    assert await door.rows("conversations", "key", "kind") == [("loopback:main:c1", "dm")]
    assert await door.rows("people", "name") == ["Ann"]
    assert received.waiting is not None
    assert received.waiting.address == "loopback:main:c1"


@pytest.mark.rule("CH-10", "CH-25", "CH-51", "CH-52")
async def test_the_same_event_again_is_told_what_became_of_the_first(door: Door) -> None:
    first = event("hello")
    original, again = await door.accepted(first, first)
    (later,) = await door.accepted(first)
    assert again == later == replace(original, arrival=Arrival.DUPLICATE)
    await door.do(lambda c: inbox.finish(c, [1], now=door.clock()))
    assert (await door.accepted(first))[0].state == "done"
    assert await door.rows("messages", "text") == ["hello"]


@pytest.mark.rule("CH-51")
@pytest.mark.case("DL-10")
async def test_a_platform_that_numbers_its_events_anew_brings_nothing_twice(door: Door) -> None:
    yesterday = [event(f"message {n}") for n in range(50)]
    known = await door.accepted(*yesterday)
    again = await door.accepted(*(replace(each, platform_event_id=f"new-{each.platform_event_id}") for each in yesterday))
    assert [each.delivery_id for each in again] == [each.delivery_id for each in known]
    assert {each.arrival for each in again} == {Arrival.DUPLICATE}
    door.clock.advance(days=8)
    await door.do(lambda c: inbox.finish(c, list(range(1, 51)), now=door.clock() - timedelta(days=8)))
    await door.do(lambda c: inbox.prune(c, door.clock() - timedelta(days=7)))
    (long_after,) = await door.accepted(replace(yesterday[7], platform_event_id="newer still"))
    assert (long_after.arrival, long_after.state, long_after.message_id) == (Arrival.DUPLICATE, "done", known[7].message_id)


@pytest.mark.rule("CH-51")
async def test_two_accounts_and_two_chats_may_use_the_same_numbers(door: Door) -> None:
    first = event()
    other_chat = replace(first, platform_event_id="another", chat_id="c2")
    assert {each.arrival for each in await door.accepted(first, other_chat)} == {Arrival.NEW}
    other_account = replace(first, account=replace(ACCOUNT, name="second"))
    assert (await door.accepted(other_account))[0].arrival is Arrival.NEW


@pytest.mark.rule("CH-10", "CH-24", "CH-50")
async def test_events_and_cursor_are_one_transaction(door: Door) -> None:
    await door.receive(event("kept"), cursor="5")

    def fails(connection: sa.Connection) -> None:
        receive(connection, ACCOUNT, [event("lost")], Cursor(name="updates", value="6"), door.setting)
        raise OperationalError("INSERT", {}, Exception("the disk is full"))

    with pytest.raises(StoreUnavailable):
        await door.db.write(fails)
    assert await door.rows("messages", "text") == ["kept"]
    assert await door.db.read(lambda c: inbox.load_cursor(c, channel="loopback", account="main", name="updates")) == "5"


@pytest.mark.rule("CH-10")
async def test_a_cursor_moves_also_when_nothing_came_with_it(door: Door) -> None:
    await door.receive(cursor="7")
    await door.receive(cursor="8")
    assert await door.db.read(lambda c: inbox.load_cursor(c, channel="loopback", account="main", name="updates")) == "8"


@pytest.mark.rule("CH-25")
async def test_deliveries_at_the_same_moment_make_one_person_and_lose_nothing(door: Door) -> None:
    same = event("the same")
    burst = [event(f"message {n}") for n in range(8)]
    results = await asyncio.gather(*(door.accepted(each) for each in [*burst, same, same, same]))
    assert sum(result[0].arrival is Arrival.NEW for result in results) == 9
    assert {result[0].state for result in results} == {"new"}
    assert len(await door.rows("people", "id")) == len(await door.rows("conversations", "id")) == 1
    assert sorted(await door.rows("messages", "text")) == sorted([*(f"message {n}" for n in range(8)), "the same"])


# Poison


@pytest.mark.rule("CH-4", "CH-27")
async def test_an_event_that_cannot_be_taken_does_not_stop_the_next(door: Door) -> None:
    def length(text: str) -> int:
        if text == "poison":
            raise ValueError("cannot be measured")
        return len(text)

    door.set(length=length)
    good, bad, better = event("one"), event("poison"), event("two")
    first, dead, last = await door.accepted(good, bad, better)
    assert (first.state, dead.state, dead.rule, last.state) == ("new", "dead", "unreadable", "new")
    assert await door.rows("messages", "text") == ["one", "two"]
    assert (await door.accepted(bad))[0] == replace(dead, arrival=Arrival.DUPLICATE)


BROKEN = "a\x00b\ud83dc\r\nd"
MENDED = "ab\ufffdc\nd"


@pytest.mark.rule("CH-6", "CH-31")
async def test_broken_characters_are_mended_wherever_they_stand(door: Door) -> None:
    (accepted,) = await door.accepted(
        event(
            BROKEN, sender=BROKEN, sender_name=BROKEN, chat=BROKEN, platform_event_id=BROKEN, platform_message_id=BROKEN, hint=BROKEN,
            reply_to=ReplyTo(message_id=BROKEN, excerpt=BROKEN * 100, quote=BROKEN),
            attachments=(Attachment(kind="file", name=f"../../{BROKEN}.txt", mime=BROKEN, fetch_ref="f"),),
        )
    )  # fmt: skip
    assert accepted.state == "new"
    ((text, name, reply, files),) = await door.rows("messages", "text", "author_name", "reply_to", "attachments")
    assert (text, name) == (MENDED, MENDED)
    assert reply["quote"] == MENDED
    assert len(reply["excerpt"]) == 500
    assert files[0]["name"] == "ab\ufffdcd.txt"


@pytest.mark.rule("CH-6")
@pytest.mark.parametrize("blank", ["", " \n\t", "\u200b\u200d\ufeff", "\u200e \u2060", "\x00"])
async def test_blank_words_alone_are_nothing_and_with_a_file_or_a_reply_a_message(door: Door, blank: str) -> None:
    file = Attachment(kind="image", name="cat.png", fetch_ref="f1")
    alone, with_file, with_reply = await door.accepted(
        event(blank), event(blank, attachments=(file,)), event(blank, reply_to=ReplyTo(message_id="m0", excerpt="what is this?"))
    )
    assert (alone.state, alone.rule) == ("ignored", "blank")
    assert with_file.state == with_reply.state == "new"


# Edited, deleted, moved


@pytest.mark.rule("CH-2", "CH-26")
async def test_an_edit_corrects_the_log_and_asks_for_nothing(door: Door) -> None:
    first = await door.one(event("tea at 4"))
    edit = replace(first.event, kind=EventKind.EDITED, platform_event_id="edit", text="tea at 5")
    received = await door.one(edit)
    assert (received.accepted.state, received.waiting) == ("done", None)
    assert received.touched == first.accepted.message_id
    assert await door.rows("messages", "text") == ["tea at 5"]
    unknown = await door.one(replace(edit, platform_event_id="edit 2", platform_message_id="never seen"))
    assert (unknown.accepted.state, unknown.touched) == ("done", "")


@pytest.mark.rule("CH-2", "CH-26")
async def test_a_deletion_takes_the_words_and_drops_what_waits(door: Door) -> None:
    first, _ = await door.receive(event("secret"), event("open"))
    received = await door.one(replace(first.event, kind=EventKind.DELETED, platform_event_id="gone", text=""))
    assert received.touched == first.accepted.message_id
    assert await door.rows("messages", "text", "state") == [("", "forgotten"), ("open", "live")]
    assert await door.rows("inbox", "state", "rule") == [("ignored", "deleted"), ("new", ""), ("done", "")]
    stored = await door.rows("inbox", "event")
    assert stored[0] is None
    assert "secret" not in str(stored)
    # An edit that arrives late brings nothing back.
    await door.one(replace(first.event, kind=EventKind.EDITED, platform_event_id="late", text="secret again"))
    assert await door.rows("messages", "text") == ["", "open"]


@pytest.mark.rule("CH-2")
async def test_a_deletion_leaves_a_running_turn_alone(door: Door) -> None:
    first = await door.one(event("question"))
    await door.do(lambda c: inbox.start(c, [1], first.accepted.turn_id))
    await door.one(replace(first.event, kind=EventKind.DELETED, platform_event_id="gone", text=""))
    assert (await door.rows("inbox", "state"))[0] == "running"


async def store_part(door: Door, part_id: str, address: str) -> None:
    chat = await door.db.read(lambda c: conversations.conversation_by_key(c, address))
    assert chat is not None
    from_address = event().address
    chat_id, _, thread = address.removeprefix("loopback:main:").partition(":")
    part = OutboundPart(part_id=part_id, address=replace(from_address, chat_id=chat_id, thread_id=thread), text="waiting")
    new = NewPart(part=part, kind="answer", expires_at=door.clock() + timedelta(minutes=15), conversation_id=chat.id)
    await door.do(lambda c: outbox_store.put(c, [new], door.clock()))


@pytest.mark.rule("CH-166", "CH-26")
@pytest.mark.parametrize("times", [1, 3])
async def test_a_chat_that_moves_takes_everything_along(door: Door, times: int) -> None:
    door.set(rules=replace(EVERYBODY, groups=frozenset({"-4518810793"})))
    old, new = "-4518810793", "-1002471352452"
    first = await door.one(in_group("before", chat=old))
    await door.one(in_group("in a topic", chat=old, chat_type=ChatType.THREAD, thread_id="7", parent_chat_id=old))
    await store_part(door, "p1", f"loopback:main:{old}")
    await store_part(door, "p2", f"loopback:main:{old}:7")
    for n in range(times):
        moved = await door.one(in_group("", chat=old, kind=EventKind.MIGRATED, target=new, platform_event_id=f"moved {n}"))
        assert moved.accepted.state == "done"
    assert sorted(await door.rows("conversations", "key")) == [f"loopback:main:{new}", f"loopback:main:{new}:7"]
    assert await door.rows("outbox", "address") == [f"loopback:main:{new}", f"loopback:main:{new}:7"]
    parts = [await door.db.read(lambda c, a=address: outbox_store.next_open(c, a)) for address in await door.rows("outbox", "address")]
    assert [part and part.part.address.chat_id for part in parts] == [new, new]
    after = await door.one(in_group("after", chat=new))
    assert after.accepted.state == "new", "the configuration lists the old id alone, and the group stays allowed"
    assert after.conversation_id == first.conversation_id


@pytest.mark.rule("CH-166")
async def test_a_move_that_is_heard_of_late_brings_the_earlier_talk_before_the_new(door: Door) -> None:
    early = await door.one(in_group("early", chat="g-old"))
    late = await door.one(in_group("late", chat="g-new"))
    moved = in_group("", chat="g-old", kind=EventKind.MIGRATED, target="g-new")
    assert (await door.one(moved)).accepted.state == "done"
    talk = await door.db.read(lambda c: conversations.window(c, late.conversation_id, 0))
    assert [message.text for message in talk] == ["early", "late"]
    assert early.conversation_id != late.conversation_id


@pytest.mark.rule("CH-166")
async def test_the_numbers_of_messages_begin_anew_where_a_chat_moved_to(door: Door) -> None:
    await door.one(in_group("old five", chat="g-old", platform_message_id="5"))
    await door.one(in_group("", chat="g-old", kind=EventKind.MIGRATED, target="g-new"))
    received = await door.one(in_group("new five", chat="g-new", platform_message_id="5"))
    assert received.accepted.state == "new"
    await door.one(replace(received.event, kind=EventKind.EDITED, platform_event_id="edit", text="new five, edited"))
    assert await door.rows("messages", "text") == ["old five", "new five, edited"]


@pytest.mark.rule("CH-2")
async def test_being_added_to_a_strange_group_is_the_operators_business(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    door.set(rules=Rules())
    added = await door.one(in_group("", kind=EventKind.MEMBERSHIP, hint="added", chat="g9"))
    assert (added.accepted.state, added.waiting, added.command) == ("ignored", None, None)
    assert [record.getMessage() for record in caplog.records] == ["loopback:main: added in a group that is not allowed (chat g9)"]


@pytest.mark.rule("CH-4")
async def test_an_unreadable_event_is_kept_as_it_came(door: Door) -> None:
    received = await door.one(event('{"kind": "hologram"}', kind=EventKind.UNKNOWN, hint="hologram"))
    assert (received.accepted.state, received.accepted.rule) == ("ignored", "unknown")
    ((stored,),) = [await door.rows("inbox", "event")]
    assert (stored["hint"], stored["text"]) == ("hologram", '{"kind": "hologram"}')


# Who is answered


@pytest.mark.rule("CH-117", "CH-110")
@pytest.mark.parametrize(
    ("stranger", "rule"),
    [
        (event("my secret"), "dm-unpaired"),
        (in_group("my secret"), "group-not-allowed"),
        (event("my secret", is_bot=True), "bot"),
        (event("my secret", is_bot=True, is_us=True), "self"),
    ],
)
async def test_of_a_refused_event_ids_time_and_rule_are_kept_and_no_word(door: Door, stranger: InboundEvent, rule: str) -> None:
    door.set(rules=Rules())
    received = await door.one(stranger)
    assert (received.accepted.state, received.accepted.rule, received.accepted.arrival) == ("ignored", rule, Arrival.NEW)
    assert await door.rows("inbox", "event_key", "rule", "event", "received_at") == [(stranger.platform_event_id, rule, None, door.clock())]
    assert await door.rows("messages", "text") == await door.rows("people", "id") == await door.rows("conversations", "id") == []
    assert (await door.accepted(stranger))[0] == replace(received.accepted, arrival=Arrival.DUPLICATE)


@pytest.mark.rule("CH-116", "CH-117")
async def test_what_a_group_says_among_itself_is_not_kept(door: Door) -> None:
    quiet = await door.one(in_group("between us", mentioned=False))
    assert quiet.accepted.rule == "not-mentioned"
    asked = await door.one(in_group("and you?"))
    assert asked.accepted.state == "new"
    assert await door.rows("messages", "text") == ["and you?"]


@pytest.mark.rule("CH-115")
async def test_a_group_has_one_talk_and_its_members_are_guests_of_it_only(door: Door) -> None:
    door.set(rules=Rules(groups=frozenset({"g1"})))
    ann, bob = await door.receive(in_group("hi", sender="ann"), in_group("hello", sender="bob"))
    assert ann.conversation_id == bob.conversation_id
    assert await door.rows("people", "role") == ["guest", "guest"]
    assert (await door.one(event("and here?", sender="ann"))).accepted.rule == "dm-unpaired"


@pytest.mark.rule("CH-13", "CH-28")
async def test_topics_are_talks_of_their_own_in_one_space(door: Door) -> None:
    topic: dict[str, Any] = {"chat_type": ChatType.THREAD, "chat": "g1", "parent_chat_id": "g1"}
    await door.receive(in_group("main"), in_group("a", thread_id="7", **topic), in_group("b", thread_id="8", **topic))
    assert await door.rows("spaces", "platform_space_id") == ["g1"]
    assert sorted(await door.rows("conversations", "key")) == ["loopback:main:g1", "loopback:main:g1:7", "loopback:main:g1:8"]


@pytest.mark.rule("CH-118", "CH-121")
async def test_a_listed_person_may_give_commands_at_once_and_no_more_when_struck_off(door: Door) -> None:
    door.set(rules=Rules(allow=frozenset({"ann"})))
    first = await door.one(event("/status"))
    assert first.command is not None
    assert first.command.sender.role == "user"
    assert (await door.one(event("/reload"))).accepted.rule == "role"
    assert (await door.one(event("hello"))).accepted.state == "new"
    door.set(rules=Rules())
    assert (await door.one(event("hello again"))).accepted.rule == "dm-unpaired"


@pytest.mark.rule("CH-118", "CH-121")
async def test_a_guest_of_a_group_who_gets_listed_is_a_user_from_then_on(door: Door) -> None:
    door.set(rules=Rules(groups=frozenset({"g1"})))
    assert (await door.one(in_group("/status"))).accepted.rule == "role"
    assert (await door.one(in_group("hello"))).accepted.state == "new"
    assert (await door.one(in_group("/status"))).accepted.rule == "role"
    door.set(rules=Rules(groups=frozenset({"g1"}), allow=frozenset({"ann"})))
    assert (await door.one(in_group("/status"))).command is not None


@pytest.mark.rule("CH-112", "CH-121")
async def test_blocking_takes_effect_with_the_next_event(door: Door) -> None:
    assert (await door.one(event())).accepted.state == "new"
    await door.do(lambda c: c.execute(sa.update(schema.people).values(blocked=True)).close())
    assert (await door.one(event())).accepted.rule == "blocked"


@pytest.mark.rule("CH-112")
async def test_only_what_would_be_answered_counts_against_the_rate(door: Door) -> None:
    asked: list[tuple[str, str]] = []

    def over(person: str, address: str) -> bool:
        asked.append((person, address))
        return len(asked) > 2

    door.set(over_rate=over)
    refused = [in_group("x", mentioned=False), event(is_bot=True), event("/help@other"), event("/reload")]
    await door.receive(*refused)
    assert asked == []
    results = await door.accepted(event("one"), event("two"), event("three"))
    assert [result.rule for result in results] == ["", "", "rate"]


@pytest.mark.rule("CH-120")
async def test_listed_bots_have_a_limit_of_their_own(door: Door) -> None:
    def over(address: str) -> bool:
        return address == "loopback:main:c1"

    door.set(rules=replace(EVERYBODY, bots=frozenset({"robot"})), bot_over_rate=over)
    assert (await door.one(event(sender="robot", is_bot=True))).accepted.rule == "rate"
    assert (await door.one(event(sender="robot", is_bot=True, chat="c2"))).accepted.state == "new"
    assert (await door.one(event(sender="ann"))).accepted.state == "new"


@pytest.mark.rule("CH-63")
async def test_a_full_queue_refuses_talk_and_still_takes_commands(door: Door) -> None:
    def full(_address: str) -> bool:
        return True

    door.set(queue_full=full)
    assert (await door.one(event("one more"))).accepted.rule == "full"
    assert (await door.one(event("/stop all"))).command is not None


@pytest.mark.rule("CH-112")
async def test_a_command_for_another_bot_is_left_to_it(door: Door) -> None:
    assert (await door.one(in_group("/help@other_bot"))).accepted.rule == "other-bot"


@pytest.mark.rule("CH-55")
async def test_what_is_older_than_a_day_is_history_and_an_old_command_nothing(door: Door) -> None:
    door.set(drop_before=door.clock() - timedelta(days=1))
    long_ago, lately = door.clock() - timedelta(days=1, seconds=1), door.clock() - timedelta(hours=23)
    old, command, fresh = await door.receive(
        event("old", platform_ts=long_ago), event("/clear", platform_ts=long_ago), event("fresh", platform_ts=lately)
    )
    assert [each.accepted.rule for each in (old, command, fresh)] == ["old", "old", ""]
    assert (old.waiting, command.command) == (None, None)
    assert await door.rows("messages", "text") == ["old", "fresh"]
    assert fresh.waiting is not None
    assert fresh.waiting.since == lately


@pytest.mark.rule("CH-55")
async def test_a_platform_clock_that_runs_ahead_makes_nothing_younger(door: Door) -> None:
    received = await door.one(event(platform_ts=door.clock() + timedelta(days=3)))
    assert received.waiting is not None
    assert received.waiting.since == door.clock()


# The page: sender ids are people, chats belong to one of them


async def person(door: Door, name: str, role: str = "user") -> None:
    row = {"id": name, "name": name, "role": role, "scope": f"people/{name}", "created_at": door.clock()}
    await door.do(lambda c: c.execute(sa.insert(schema.people), row).close())


async def test_nobody_writes_into_a_chat_of_somebody_else(door: Door) -> None:
    door.set(capabilities=PAGE, rules=Rules())
    await person(door, "p-ann")
    await person(door, "p-bob")
    await door.do(
        lambda c: conversations.create_conversation(
            c, now=door.clock(), key="loopback:main:c1", channel="loopback", account="main", kind="web", person_id="p-ann"
        )
    )
    mine, theirs, nowhere, nobody = await door.accepted(
        event(sender="p-ann"), event(sender="p-bob"), event(sender="p-ann", chat="c2"), event(sender="p-eve")
    )
    assert (mine.state, theirs.rule, nowhere.rule, nobody.rule) == ("new", "not-yours", "not-yours", "not-yours")


async def test_a_message_in_place_of_another_takes_that_and_all_after_it_out_of_the_talk(door: Door) -> None:
    first, _ = await door.receive(event("one"), event("two"))
    third = await door.one(event("one, better", target=first.accepted.message_id))
    assert words(third) == "one, better"
    assert await door.rows("messages", "text", "state") == [("one", "hidden"), ("two", "hidden"), ("one, better", "live")]
    foreign = await door.one(event("mine now", chat="c2", target=third.accepted.message_id))
    assert (foreign.accepted.state, foreign.accepted.rule) == ("ignored", "not-yours")
