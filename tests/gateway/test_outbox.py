"""Durable out: what is stored goes out in order, once as far as anybody can know, and no chat waits for another (CH-80 to CH-92)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address
from channels.port import Capabilities, OutboundPart, SendOutcome
from gateway.access import Rules
from gateway.arrivals import senders
from gateway.arrivals.inbox import Waiting
from gateway.config import Delivery
from gateway.delivery import held_parts, outbox_store
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.outbox_store import NewPart, OpenPart
from gateway.delivery.replies import Replies
from gateway.delivery.rules import PartState
from gateway.language import guess, say
from gateway.turn_store import TurnEnd
from memory import conversations
from memory.database import Database
from memory.schema import outbox as table
from memory.schema import people
from tests.conftest import FakeClock
from tests.gateway.arrivals import ACCOUNT, Door, event, in_group
from tests.harness import eventually
from tests.patience import patience

BARE = replace(CAPABILITIES, resend_key_s=None, reconcile=False)
OTHER = replace(ACCOUNT, name="other")


def at(chat: str, account: Account = ACCOUNT) -> Address:
    return Address(account=account, chat_id=chat)


MARKED = f"Well done.\n{say('en', 'sent_again')}"


class SlowChannel(LoopbackChannel):
    """Does not come back from sending to the chat `slow`."""

    async def send(self, part: OutboundPart) -> SendOutcome:
        if part.address.chat_id == "slow":
            await asyncio.Event().wait()
        return await super().send(part)


def marked(part: OpenPart) -> str:
    return f"{part.part.text}\n{say(guess(part.part.text), 'sent_again')}"


@dataclass
class Office:
    """An outbox over a database and loopback platforms. `later` moves the clock and looks again."""

    db: Database
    clock: FakeClock
    group: asyncio.TaskGroup
    can: Capabilities = CAPABILITIES
    platform: LoopbackPlatform = field(default_factory=LoopbackPlatform)
    gates: Gates = field(default_factory=Gates)
    channels: dict[str, LoopbackChannel] = field(default_factory=dict[str, LoopbackChannel])
    outcomes: list[PartState] = field(default_factory=list[PartState])
    stopped: list[str] = field(default_factory=list[str])
    addresses: set[str] = field(default_factory=set[str])
    rules: Rules | None = None

    def __post_init__(self) -> None:
        self.platform.clock = self.clock
        for account in (ACCOUNT, OTHER):
            self.channels[str(account)] = SlowChannel(self.platform, account=account, capabilities=self.can)
        self.open()

    def open(self) -> None:
        self.outbox = Outbox(
            db=self.db, clock=self.clock, gates=self.gates, find_channel=lambda account: self.channels.get(str(account)), group=self.group,
            marked_text=marked, on_outcome=lambda _part, state: self.outcomes.append(state),
            on_account_stopped=lambda _account, reason, _code: self.stopped.append(reason),
            revoked=lambda connection, address: self.rules is not None and senders.lost_access(connection, address, self.rules),
        )  # fmt: skip

    async def restarted(self) -> None:
        """The process was killed and starts again."""
        self.outbox.close()
        self.gates = Gates()
        self.open()
        await self.outbox.recover(parked=False)
        await self.outbox.drained()

    async def doubt(self, preview: str, *, ago_s: float = 0, chat: str = "c1") -> None:
        """The preview of a turn whose answer is stored next left so long ago, and nobody knows more of it."""
        at_then = self.clock() - timedelta(seconds=ago_s)
        part = OutboundPart(part_id=f"t.{chat}.preview", address=at(chat), text=preview, preview=True)
        until = self.clock() + timedelta(seconds=900)
        row = NewPart(part=part, kind="preview", turn_id=f"t.{chat}", expires_at=until, tried_at=at_then)
        await self.db.write(lambda connection: outbox_store.put(connection, [row], self.clock()))

    async def put(
        self, *texts: str, chat: str = "c1", account: Account = ACCOUNT, kind: str = "answer", expires_s: float = 900, turn: str = "",
        **more: Any,
    ) -> None:
        address = at(chat, account)
        parts = [
            NewPart(
                part=OutboundPart(part_id=f"{chat}.{text[:20]}", address=address, text=text, **more), kind=kind, turn_id=turn or f"t.{chat}",
                expires_at=self.clock() + timedelta(seconds=expires_s),
            )
            for text in texts
        ]  # fmt: skip
        await self.db.write(lambda connection: outbox_store.put(connection, parts, self.clock()))
        self.addresses.add(str(address))

    async def send(self, *texts: str, **more: Any) -> None:
        """Store parts and let everything leave that can leave now."""
        await self.put(*texts, **more)
        await self.later()

    async def later(self, **time: Any) -> None:
        self.clock.advance(**time)
        for address in self.addresses:
            self.outbox.wake(address)
        async with asyncio.timeout(patience(5)):
            await self.outbox.drained()

    async def until(self, look: Callable[[], bool]) -> None:
        async with asyncio.timeout(patience(5)):
            while not look():  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)

    async def rows(self, *columns: str) -> list[Any]:
        query = sa.select(*(table.c[name] for name in columns)).order_by(table.c.id)
        found = await self.db.read(lambda connection: connection.execute(query).all())
        return [row[0] if len(columns) == 1 else tuple(row) for row in found]

    async def states(self) -> list[str]:
        return await self.rows("state")

    async def set(self, **values: Any) -> None:
        await self.db.write(lambda connection: connection.execute(sa.update(table).values(**values)).close())


@asynccontextmanager
async def office_of(db: Database, clock: FakeClock, can: Capabilities = CAPABILITIES) -> AsyncGenerator[Office]:
    class Over(Exception):
        pass

    try:
        async with asyncio.TaskGroup() as group:
            yield Office(db, clock, group, can)
            raise Over
    except* Over:
        pass


@pytest.fixture
async def office(sqlite: Database, clock: FakeClock) -> AsyncGenerator[Office]:
    async with office_of(sqlite, clock) as office:
        yield office


@pytest.fixture
async def bare(sqlite: Database, clock: FakeClock) -> AsyncGenerator[Office]:
    """A platform that knows no keys and cannot be asked what it shows."""
    async with office_of(sqlite, clock, BARE) as office:
        yield office


# A preview of which nobody knows


@pytest.mark.rule("CH-97", "CH-96", "CH-80")
@pytest.mark.parametrize(
    ("can", "ago_s", "shown", "seen", "calls"),
    [
        (replace(BARE, resend_key_s=120.0), 10, True, ["Well done."], ["send", "edit"]),
        (replace(BARE, resend_key_s=120.0), 10, False, ["Well done."], ["send", "edit"]),
        (replace(BARE, resend_key_s=120.0, reconcile=True), 130, True, ["Well done."], ["find", "edit"]),
        (replace(BARE, resend_key_s=120.0, reconcile=True), 130, False, ["Well done."], ["find", "send"]),
        (BARE, 1, True, ["Well", MARKED], ["send"]),
        (BARE, 1, False, [MARKED], ["send"]),
        (replace(BARE, resend_key_s=120.0), 130, True, ["Well", MARKED], ["send"]),
    ],
    ids=["keyed", "keyed, lost", "found", "not there", "bare", "bare, lost", "key is over"],
)
async def test_a_preview_in_doubt_is_settled_before_the_answer_takes_its_place(
    sqlite: Database, clock: FakeClock, can: Capabilities, ago_s: float, shown: bool, seen: list[str], calls: list[str]
) -> None:
    async with office_of(sqlite, clock, can) as office:
        await office.doubt("Well", ago_s=ago_s)
        if shown:
            office.platform.show(OutboundPart(part_id="t.c1.preview", address=at("c1"), text="Well"))
        await office.send("Well done.")
        assert office.platform.texts() == seen
        assert [call.name for call in office.platform.calls] == calls
        assert await office.rows("kind", "state") == [("answer", "sent")], "nothing is left of the preview, and nothing counts it as lost"
        assert not office.outbox.losses(str(at("c1")))


@pytest.mark.rule("CH-97", "CH-80")
async def test_a_preview_in_doubt_never_costs_an_answer_that_has_no_room_to_say_so(sqlite: Database, clock: FakeClock) -> None:
    async with office_of(sqlite, clock, replace(BARE, text_max=20)) as office:
        await office.doubt("Well")
        await office.send("x" * 20)
        assert office.platform.texts() == ["x" * 20]


@pytest.mark.rule("CH-97", "CH-101")
async def test_a_preview_in_doubt_is_looked_for_after_a_kill_too(office: Office) -> None:
    await office.doubt("Well")
    await office.put("Well done.")
    office.platform.show(OutboundPart(part_id="t.c1.preview", address=at("c1"), text="Well"))
    await office.restarted()
    assert office.platform.texts() == ["Well done."]


# Order


@pytest.mark.rule("CH-80", "CH-81")
async def test_parts_of_a_chat_go_out_in_order_and_their_ids_are_kept(office: Office) -> None:
    await office.send("one", "two", "three")
    assert office.platform.texts() == ["one", "two", "three"]
    assert await office.rows("state", "platform_ids", "attempts") == [("sent", ["b1"], 1), ("sent", ["b2"], 1), ("sent", ["b3"], 1)]
    assert office.outcomes == [PartState.SENT] * 3


@pytest.mark.rule("CH-81")
async def test_a_part_that_is_refused_lets_the_next_one_out(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.platform.fail_next({"refuse": "blocked by the person"})
    await office.send("one", "two")
    assert await office.rows("state", "reason") == [("failed", "blocked by the person"), ("sent", "")]
    assert [record.levelname for record in caplog.records] == ["WARNING"], "one operator line"


@pytest.mark.rule("CH-81", "CH-92")
async def test_a_chat_that_hangs_delays_no_other(office: Office) -> None:
    await office.put("never", chat="slow")
    office.outbox.wake(str(at("slow")))
    await office.put("quick", chat="c2")
    office.outbox.wake(str(at("c2")))
    await office.until(lambda: office.outcomes == [PartState.SENT])
    assert office.platform.texts() == ["quick"]

    async def slow_hangs() -> bool:
        return await office.states() == ["sending", "sent"]

    await eventually(slow_hangs)  # which of the two chats begins is not settled


@pytest.mark.rule("CH-80")
async def test_sending_is_written_before_the_request_leaves(office: Office) -> None:
    seen: list[list[str]] = []

    class Looks(LoopbackChannel):
        async def send(self, part: OutboundPart) -> SendOutcome:
            seen.append(await office.states())
            return await super().send(part)

    office.channels[str(ACCOUNT)] = Looks(office.platform)
    await office.send("one")
    assert seen == [["sending"]]


# The gate


@pytest.mark.rule("CH-91", "CH-33", "CH-90")
@pytest.mark.case("DL-19")
@pytest.mark.parametrize("after", [1, 27, 35, 149, 3 * 3600])
async def test_an_order_to_wait_is_kept_whole_and_holds_nobody_else_up(office: Office, after: int) -> None:
    office.platform.fail_next({"later": after})
    await office.send("one", "two", expires_s=86400)
    await office.send("elsewhere", chat="c2")
    assert office.platform.texts() == ["elsewhere"]
    await office.later(seconds=after)
    assert office.platform.texts() == ["elsewhere"], "half a second and some jitter beyond the order"
    assert not office.gates.is_open(at("c1"), office.clock())
    await office.later(seconds=0.5 + after * 0.1)
    assert office.platform.texts() == ["elsewhere", "one", "two"]
    assert [call.chat_id for call in office.platform.calls].count("c1") == 3, "not one call inside the wait"


@pytest.mark.rule("CH-90", "CH-91", "CH-186")
async def test_an_order_for_the_whole_account_holds_all_its_chats_and_no_other_account(office: Office) -> None:
    office.platform.fail_next({"later": 60, "whole_account": True})
    await office.send("one", expires_s=86400)
    await office.send("elsewhere", chat="c2", expires_s=86400)
    await office.send("other", account=OTHER)
    assert office.platform.texts() == ["other"]
    until = office.gates.account_closed_until(ACCOUNT, office.clock())
    assert until is not None and until - office.clock() >= timedelta(seconds=60), "as the operators' page shows it"
    assert [call.chat_id for call in office.platform.calls].count("c2") == 0, "nobody else is asked"
    await office.later(seconds=67)
    assert sorted(office.platform.texts()) == ["elsewhere", "one", "other"]
    assert office.gates.account_closed_until(ACCOUNT, office.clock()) is None


@pytest.mark.rule("CH-91")
async def test_a_wait_survives_a_restart(office: Office) -> None:
    office.platform.fail_next({"later": 60})
    await office.send("one")
    await office.restarted()
    assert office.platform.texts() == []
    await office.later(seconds=70)
    assert office.platform.texts() == ["one"]


@pytest.mark.rule("CH-91", "CH-34")
async def test_an_unreachable_platform_is_tried_less_and_less_often(office: Office) -> None:
    office.platform.down = True
    await office.send("one", expires_s=86400)
    for _ in range(100):
        await office.later(seconds=3)
    assert 8 <= len(office.platform.calls) <= 12
    office.platform.down = False
    await office.later(seconds=70)
    assert office.platform.texts() == ["one"]
    assert await office.rows("state", "unknowns") == [("sent", 0)]


@pytest.mark.rule("CH-90", "CH-91", "CH-73")
async def test_a_reaction_is_put_through_the_gate_or_not_at_all(office: Office) -> None:
    await office.outbox.react(at("c1"), "m1", "👀")
    office.gates.close(at("c1"), office.clock(), 10)
    await office.outbox.react(at("c1"), "m2", "👀")
    await office.outbox.react(at("c2"), "m3", "⏳")
    await office.outbox.react(replace(at("c1"), account=Account(channel="gone")), "m4", "👀")
    assert office.platform.reactions == [("m1", "👀"), ("m3", "⏳")]


# The account


@pytest.mark.rule("CH-80", "CH-212", "CH-21")
async def test_a_broken_account_sends_nothing_until_it_is_proven_again(office: Office) -> None:
    office.platform.fail_next({"operator": "a new token is needed"})
    await office.send("one", "two")
    await office.send("three", chat="c2")
    await office.send("other", account=OTHER)
    assert office.platform.texts() == ["other"]
    assert office.stopped == ["a new token is needed"]
    await office.later(seconds=60)
    assert await office.states() == ["queued", "queued", "queued", "sent"]
    assert len(office.platform.calls) == 2
    assert office.gates.prove(ACCOUNT)
    office.outbox.wake_account(ACCOUNT)
    await office.outbox.drained()
    assert office.platform.texts("c2") == ["three"]
    assert office.platform.texts("c1") == ["other", "one", "two"]


@pytest.mark.rule("CH-82", "CH-81")
async def test_without_its_channel_a_part_waits_and_expires(office: Office) -> None:
    channel = office.channels.pop(str(ACCOUNT))
    await office.send("old", expires_s=100)
    await office.put("young", expires_s=900)
    await office.later(seconds=101)
    assert await office.states() == ["expired", "queued"]
    office.channels[str(ACCOUNT)] = channel
    office.outbox.wake_account(ACCOUNT)
    await office.outbox.drained()
    assert office.platform.texts() == ["young"]


# The chat


@pytest.mark.rule("CH-80", "CH-166")
async def test_a_moved_chat_takes_all_its_parts_along(office: Office) -> None:
    await office.db.write(
        lambda c: conversations.create_conversation(c, now=office.clock(), key=str(at("old")), channel="loopback", account="main", kind="group")
    )
    office.platform.fail_next({"moved": "new"})
    await office.put("one", "two", chat="old")
    await office.later()
    await office.until(lambda: office.outcomes.count(PartState.SENT) == 2)
    assert [call.chat_id for call in office.platform.calls] == ["old", "new", "new"]
    assert await office.rows("address", "state") == [(str(at("new")), "sent")] * 2
    assert await office.db.read(lambda c: conversations.conversation_by_key(c, str(at("new")))) is not None


@pytest.mark.case("SC-12")
async def test_a_topic_that_is_gone_leaves_all_its_parts_to_the_chat_and_its_talk_is_put_aside(office: Office) -> None:
    topic, chat = replace(at("g1"), thread_id="7"), at("g1")
    door = Door(office.db, office.clock)
    told = await door.one(in_group("in the topic", thread_id="7", parent_chat_id="g1"))
    office.platform.fail_next({"thread_gone": True})
    parts = [OutboundPart(part_id=f"p{n}", address=topic, text=text) for n, text in enumerate(("one", "two"))]
    later = office.clock() + timedelta(hours=1)
    await office.db.write(
        lambda c: outbox_store.put(c, [NewPart(part=part, kind="answer", expires_at=later) for part in parts], office.clock())
    )
    office.outbox.wake(str(topic))
    await office.until(lambda: office.outcomes.count(PartState.SENT) == 2)
    assert [str(shown.address) for shown in office.platform.shown] == [str(chat), str(chat)]
    assert office.platform.texts("g1") == ["one", "two"]
    assert await office.rows("address", "state") == [(str(chat), "sent")] * 2
    assert await door.rows("conversations", "key") == [f"{topic}#{told.conversation_id}"]
    again = await door.one(in_group("somebody made it anew", thread_id="7", parent_chat_id="g1"))
    assert again.conversation_id != told.conversation_id


@pytest.mark.rule("CH-83", "CH-121")
async def test_who_lost_access_meanwhile_gets_nothing_more(office: Office) -> None:
    door = Door(office.db, office.clock)
    await door.receive(event(chat="c1", sender="ann"), event(chat="c2", sender="bob"), in_group(chat="g1"), in_group(chat="g2"))
    await office.db.write(lambda c: c.execute(sa.update(people).where(people.c.name == "Bob").values(blocked=True)).close())
    office.rules = Rules(allow=frozenset({"ann", "bob"}), groups=frozenset({"g1"}))
    for chat in ("c1", "c2", "g1", "g2", "never-met"):
        await office.send("hello", chat=chat)
    assert [message.address.chat_id for message in office.platform.shown] == ["c1", "g1", "never-met"]
    assert [row for row in await office.rows("state", "reason") if row[0] == "failed"] == [("failed", "revoked")] * 2
    office.rules = Rules()
    await office.send("again", chat="c1")
    await office.send("a notice", chat="c1", kind="notice")
    assert office.platform.texts("c1") == ["hello", "a notice"]


# Nobody knows whether it arrived


@pytest.mark.rule("CH-34", "CH-35", "CH-80")
@pytest.mark.case("DL-12")
@pytest.mark.parametrize("shown", ["before", "after"])
async def test_with_a_key_an_unknown_part_is_sent_again_and_shown_once(office: Office, shown: str) -> None:
    office.platform.fail_next({"unknown": shown})
    await office.send("one", "two")
    assert (await office.rows("state", "unknowns"))[0] == ("unknown", 1)
    await office.later(seconds=1)
    assert office.platform.texts() == ["one", "two"]
    assert await office.states() == ["sent", "sent"]
    assert [call.name for call in office.platform.calls] == ["send", "send", "send"]


@pytest.mark.rule("CH-80")
@pytest.mark.case("DL-12")
@pytest.mark.parametrize(("shown", "calls"), [("after", ["send", "find"]), ("before", ["send", "find", "send"])])
async def test_where_it_can_be_looked_up_nothing_is_sent_twice(sqlite: Database, clock: FakeClock, shown: str, calls: list[str]) -> None:
    async with office_of(sqlite, clock, replace(BARE, reconcile=True)) as office:
        office.platform.fail_next({"unknown": shown})
        await office.send("one")
        await office.later(seconds=1)
        assert office.platform.texts() == ["one"]
        assert [call.name for call in office.platform.calls] == calls
        assert await office.rows("state", "platform_ids") == [("sent", ["b1"])]


@pytest.mark.rule("CH-80")
@pytest.mark.case("DL-12")
@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is done.", "(Sent again: the first try may not have arrived.)"),
        ("終わりました。", say("ja", "sent_again")),
        ("已经完成。", say("zh", "sent_again")),
    ],
)
async def test_else_one_second_copy_says_what_it_is_in_the_readers_language(bare: Office, text: str, mark: str) -> None:
    bare.platform.fail_next({"unknown": "after"})
    await bare.send(text)
    await bare.later(seconds=1)
    assert bare.platform.texts() == [text, f"{text}\n{mark}"]
    assert await bare.states() == ["sent"]


@pytest.mark.rule("CH-80", "CH-91")
async def test_a_doubtful_part_that_had_to_wait_beyond_its_key_says_that_it_may_be_a_copy(sqlite: Database, clock: FakeClock) -> None:
    async with office_of(sqlite, clock, replace(BARE, resend_key_s=120.0)) as office:
        office.platform.fail_next({"unknown": "after"}, {"later": 149}, {"later": 5})
        await office.send("Done.")
        for _ in range(4):
            await office.later(seconds=170)
        assert office.platform.texts() == ["Done.", f"Done.\n{say('en', 'sent_again')}"]
        assert await office.rows("state", "unknowns") == [("sent", 1)]


@pytest.mark.rule("CH-80")
async def test_there_is_no_third_copy(bare: Office) -> None:
    bare.platform.fail_next(*[{"unknown": "before"}] * 9)
    await bare.send("one", "two")
    for _ in range(30):
        await bare.later(seconds=10)
    assert [call.name for call in bare.platform.calls].count("send") == 4
    assert await bare.rows("state", "reason") == [("failed", "nobody can tell whether it arrived")] * 2
    assert bare.outbox.losses(str(at("c1")))


@pytest.mark.rule("CH-80")
async def test_a_kill_during_the_second_copy_makes_no_third(bare: Office) -> None:
    bare.platform.fail_next({"unknown": "before"})
    await bare.send("one")
    await bare.set(state="sending", unknowns=1, not_before=None)
    part = (await bare.rows("part"))[0]
    await bare.set(part=part | {"text": "one\n(marked)", "sent_again": True})  # as it was written before the request left
    await bare.restarted()
    assert bare.platform.texts() == []
    assert await bare.states() == ["failed"]


@pytest.mark.rule("CH-80", "CH-32")
async def test_a_copy_that_has_no_room_for_the_mark_is_not_sent(bare: Office) -> None:
    bare.platform.fail_next({"unknown": "before"})
    await bare.send("x" * 4096)
    await bare.later(seconds=1)
    assert await bare.states() == ["failed"]
    assert len(bare.platform.calls) == 1


@pytest.mark.rule("CH-101", "CH-80")
@pytest.mark.parametrize("shown", [False, True])
async def test_what_was_being_sent_when_the_process_died_is_settled_by_the_platforms_means(office: Office, shown: bool) -> None:
    await office.put("one")
    await office.set(state="sending", attempts=1, attempted_at=office.clock())
    if shown:
        office.platform.show(OutboundPart(part_id="c1.one", address=at("c1"), text="one"))
    await office.restarted()
    assert office.platform.texts() == ["one"]
    assert await office.rows("state", "unknowns") == [("sent", 1)]


@pytest.mark.rule("CH-80")
async def test_the_time_of_a_key_begins_with_the_first_try_that_may_have_arrived(sqlite: Database, clock: FakeClock) -> None:
    async with office_of(sqlite, clock, replace(BARE, resend_key_s=120.0)) as office:
        office.platform.fail_next({"later": 149}, {"unknown": "after"})
        await office.send("one")
        await office.later(seconds=170)
        await office.later(seconds=1)
        ((state, attempts, part),) = await office.rows("state", "attempts", "part")
        assert (state, attempts, part["text"]) == ("sent", 3, "one"), "the key was still good, so no copy had to be marked"


@pytest.mark.rule("CH-80")
async def test_a_platform_that_is_down_is_not_hammered(office: Office) -> None:
    office.platform.fail_next(*[{"unknown": "before"}] * 50)
    await office.send("one")
    for _ in range(600):
        await office.later(seconds=0.2)
    assert len([call for call in office.platform.calls if call.name == "send"]) < 12


# Edits


@pytest.mark.rule("CH-96", "CH-97", "CH-36")
async def test_a_preview_becomes_the_first_part_by_an_edit(office: Office) -> None:
    office.platform.show(OutboundPart(part_id="t.preview", address=at("c1"), text="The beginn"))
    office.platform.fail_next({"unknown": "before"}, {"unknown": "after"}, {"unknown": "before"})
    await office.put("The beginning", edit_of="b1")
    await office.put("and the end")
    for _ in range(5):
        await office.later(seconds=10)
    assert office.platform.texts() == ["The beginning", "and the end"]
    assert await office.rows("state", "platform_ids") == [("sent", ["b1"]), ("sent", ["b2"])]


@pytest.mark.rule("CH-97", "CH-36")
async def test_a_preview_that_is_gone_is_replaced_by_a_new_message(office: Office) -> None:
    await office.send("The whole", edit_of="b9")
    assert office.platform.texts() == ["The whole"]
    assert [call.name for call in office.platform.calls] == ["edit", "send"]


# Too late


@pytest.mark.rule("CH-82", "CH-101")
@pytest.mark.case("DL-13")
async def test_old_answers_are_not_sent_and_the_operator_hears_it_in_one_line(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    for n in range(110):
        await office.put(f"answer {n}", chat=f"c{n % 7}")
    office.clock.advance(hours=12)
    await office.put("take your tea", kind="reminder", expires_s=86400, chat="c0")
    office.clock.advance(hours=3)
    await office.restarted()
    assert office.platform.texts() == ["take your tea"]
    assert len(caplog.records) == 1
    assert "110" in caplog.records[0].getMessage()


@pytest.mark.rule("CH-82")
async def test_an_answer_expires_while_it_waits_and_lets_the_next_one_out(office: Office) -> None:
    office.platform.fail_next({"later": 950})
    await office.send("old")
    office.clock.advance(seconds=600)
    await office.put("young")
    await office.later(seconds=301)
    assert await office.states() == ["expired", "queued"]
    await office.later(seconds=200)
    assert office.platform.texts() == ["young"]


def ending(turn: str, answer: str) -> TurnEnd:
    return TurnEnd(turn_id=turn, conversation_id="x", state="answered", rows=(1,), answer=answer)


def asked(office: Office) -> Waiting:
    return Waiting(
        row_id=1, delivery_id="d", address=str(at("c1")), conversation_id="x", person_id="p", message_id="m", turn_id="t",
        received_at=office.clock(), platform_message_id="m7",
    )  # fmt: skip


@pytest.mark.rule("CH-82")
async def test_a_lost_answer_is_told_once_with_the_next_one(office: Office) -> None:
    replies = Replies(office.outbox, can=lambda _account: office.can, limits=Delivery)
    office.platform.fail_next({"refuse": "no"})
    await office.send("lost")
    for turn in ("t1", "t2"):
        reply = replies.compose(at("c1"), ending(turn, f"answer {turn}"), asked(office), language="en", now=office.clock())

        def store(connection: sa.Connection, parts: Sequence[NewPart] = reply.parts, tells: bool = reply.tells_losses) -> None:
            outbox_store.put(connection, parts, office.clock())
            if tells:
                replies.mark_told(connection, str(at("c1")))

        await office.db.write(store)
        replies.stored(str(at("c1")), reply)
        await office.outbox.drained()
    assert office.platform.texts() == [say("en", "lost_answer"), "answer t1", "answer t2"]
    newest = await office.db.read(lambda c: outbox_store.newest_answer(c, str(at("c1"))))
    assert [part.text for part in newest] == ["answer t2"]
    await office.restarted()
    assert not office.outbox.losses(str(at("c1")))


@pytest.mark.rule("CH-141")
@pytest.mark.parametrize("answer", ["```\n```", "# ", "> "])
async def test_an_answer_that_renders_to_nothing_is_not_silence(office: Office, answer: str) -> None:
    replies = Replies(office.outbox, can=lambda _account: office.can, limits=Delivery)
    reply = replies.compose(at("c1"), ending("t1", answer), asked(office), language="en", now=office.clock())
    assert [new.part.text for new in reply.parts] == [say("en", "empty")]


@pytest.mark.case("DL-08")
async def test_an_answer_that_has_no_way_out_is_an_error_in_the_log(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    replies = Replies(office.outbox, can=lambda _account: None, limits=Delivery)
    assert replies.compose(at("c1"), ending("t1", "words"), asked(office), language="en", now=office.clock()).parts == ()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.case("DL-14")
async def test_after_a_reset_nothing_of_before_leaves_and_nobody_is_told_of_a_loss(office: Office) -> None:
    office.platform.fail_next({"later": 30})
    await office.send("one", "two")
    await office.put("remember the tea", kind="reminder")
    await office.db.write(lambda c: outbox_store.cancel(c, str(at("c1")), office.clock()))
    await office.put("after")
    await office.later(seconds=40)
    assert office.platform.texts() == ["remember the tea", "after"]
    assert not office.outbox.losses(str(at("c1")))
    assert await office.db.read(outbox_store.untold_losses) == []


# Faults of an adapter


@pytest.mark.rule("CH-9", "CH-11")
async def test_an_adapter_that_raises_ends_nothing_else(sqlite: Database, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(LoopbackChannel):
        async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None:
            raise ZeroDivisionError("a bug in an adapter")

    async with office_of(sqlite, clock, replace(BARE, reconcile=True)) as office:
        office.channels[str(ACCOUNT)] = Faulty(office.platform, capabilities=office.can)
        office.platform.fail_next({"raise": ZeroDivisionError("a bug in an adapter")})
        await office.send("one")
        await office.later(seconds=1)
        await office.later(seconds=5)
        assert await office.states() == ["unknown"]
        await office.send("two", chat="c2", account=OTHER)
        assert office.platform.texts() == ["two"]
        await office.later(minutes=15)
        assert await office.states() == ["expired", "sent"]
    assert any("ZeroDivisionError" in (record.exc_text or str(record.exc_info)) for record in caplog.records)


@pytest.mark.rule("CH-100")
async def test_once_closed_nothing_more_is_sent_and_everything_stays_stored(office: Office) -> None:
    office.platform.fail_next({"later": 10})
    await office.send("one")
    office.outbox.close()
    await office.later(seconds=20)
    assert office.platform.texts() == []
    await office.restarted()
    assert office.platform.texts() == ["one"]


@pytest.mark.rule("CH-84")
@pytest.mark.case("SC-11")
async def test_a_send_that_names_no_message_is_unknown_and_is_looked_up(sqlite: Database, clock: FakeClock) -> None:
    async with asyncio.TaskGroup() as group:
        office = Office(sqlite, clock, group)
        office.platform.fail_next({"nameless": True})
        await office.send("hello")
        assert await office.states() == ["unknown"]
        await office.later(seconds=5)
        assert await office.states() == ["sent"]
        assert office.platform.texts() == ["hello"]
        office.outbox.close()


@pytest.mark.rule("CH-91", "CH-101")
@pytest.mark.parametrize("wait_s", [1, 27, 149, 600])
async def test_an_order_to_wait_outlives_the_process(office: Office, wait_s: float) -> None:
    """For everything in that chat: signs are made past the outbox, and would break the order."""
    office.platform.fail_next({"later": wait_s})
    await office.send("one")
    office.clock.advance(seconds=wait_s / 2)
    await office.restarted()
    assert not office.gates.is_open(at("c1"), office.clock())
    assert office.gates.is_open(at("c2"), office.clock())
    await office.later(seconds=0.7 * wait_s + 1)
    assert office.platform.texts() == ["one"]


@pytest.mark.rule("CH-82", "WX-44")
async def test_an_answer_that_found_no_room_among_those_that_wait_is_told_without_a_restart(office: Office) -> None:
    for number in range(1, 5):
        await office.put(f"answer {number}", turn=f"t{number}")
    await office.db.write(lambda connection: held_parts.hold(connection, str(at("c1")), office.clock()))
    assert await office.states() == ["expired", "queued", "queued", "queued"]
    await office.later()
    assert office.outbox.losses(str(at("c1")))


@pytest.mark.rule("CH-91", "WX-44")
async def test_what_waits_for_the_person_closes_no_gate(office: Office) -> None:
    await office.put("one")
    await office.set(reason=held_parts.WAITING, not_before=office.clock() + timedelta(hours=24), expires_at=office.clock() + timedelta(hours=24))
    await office.restarted()
    assert office.gates.is_open(at("c1"), office.clock())
