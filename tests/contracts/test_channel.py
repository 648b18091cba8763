"""The contract of adapters (CH-20 to CH-43): each platform passes it against its peer, the shipped loopback one first."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from channels.errors import AttachmentRefused, ChannelError, CredentialRefused
from channels.message import Action, ChatType, EventKind, InboundEvent, from_json, to_json
from channels.port import (
    Accepted,
    Arrival,
    Channel,
    Cursor,
    Editing,
    Fetching,
    NeedsOperator,
    OutboundPart,
    Reactions,
    Reconcile,
    Refused,
    Sent,
    TryLater,
    Typing,
    Unknown,
)
from channels.render import render
from channels.units import measure
from gateway.access import Facts, decide
from gateway.arrivals.hygiene import cleaned
from gateway.supervise import ChannelState, Supervisor
from memory.errors import StoreUnavailable
from tests.conftest import FakeClock
from tests.contracts.channel_contract import BAD, Fault, File, Journal, MakePeer, Peer, Place, Pressing, chats, lacks, part, running, until
from tests.contracts.discord_peer import discord
from tests.contracts.loopback_peer import loopback
from tests.contracts.telegram_peer import telegram
from tests.contracts.wechat_ilink_peer import wechat_ilink
from tests.contracts.wechat_official_peer import wechat_official
from tests.contracts.wechat_wecom_peer import wechat_wecom
from tests.patience import patience

PEERS: list[MakePeer] = [loopback, telegram, wechat_ilink, discord, wechat_official, wechat_wecom]
AT_ONCE_S = 1.0  # an adapter that waits out a limit takes longer
QUIET_S = 0.5  # an attempt that says nothing for so long has said everything


@pytest.fixture(params=PEERS, ids=lambda make: make.__name__)
async def peer(request: pytest.FixtureRequest) -> AsyncGenerator[Peer, None]:
    async for peer in request.param():
        yield peer


@pytest.fixture
def journal() -> Journal:
    return Journal()


@asynccontextmanager
async def connected(peer: Peer, journal: Journal) -> AsyncGenerator[Channel]:
    """An adapter that runs and hears."""
    channel = peer.adapter(cursor=journal.cursor)
    async with running(channel, journal) as task:
        await until(lambda: channel.proven_at is not None or task.done(), within_s=15)
        yield channel


def dm(peer: Peer) -> Place:
    return peer.place(ChatType.DM)


# In


@pytest.mark.rule("CH-20", "CH-1")
async def test_a_text_comes_in_whole_and_the_reply_arrives_where_it_came_from(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal) as channel:
        for kind in chats(peer):
            place = peer.place(kind)
            before = datetime.now(UTC)
            post = await peer.writes("good morning", place, mentions_us=True)
            event = (await journal.until(1))[-1]
            assert (event.account, event.kind) == (peer.account, EventKind.MESSAGE)
            assert (event.platform_event_id, event.platform_message_id) == (post.event_id, post.message_id)
            assert (event.chat_id, event.thread_id, event.parent_chat_id) == (place.address.chat_id, place.address.thread_id, place.parent)
            assert event.address == place.address
            assert event.chat_type is kind
            assert (event.sender_id, event.is_bot, event.is_us, event.mentioned) == (post.sender_id, False, False, True)
            assert event.sender_name
            assert (event.text, event.attachments, event.reply_to) == ("good morning", (), None)
            assert before - timedelta(seconds=5) <= event.received_at <= datetime.now(UTC)
            assert event.received_at.tzinfo is not None
            assert event.platform_ts is None or event.platform_ts.tzinfo is not None
            assert from_json(InboundEvent, to_json(event)) == event
            outcome = await channel.send(part(place, "hello back", part_id=f"p.{kind}", reply_to=post.message_id))
            assert isinstance(outcome, Sent)
            (seen,) = peer.seen(place)
            assert (seen.text, seen.chat_id, seen.thread_id) == ("hello back", place.address.chat_id, place.address.thread_id)
            assert outcome.platform_ids == (seen.id,)
            journal.events.clear()


@pytest.mark.rule("CH-21")
async def test_a_bad_credential_is_the_operators_business_and_ends_every_attempt(peer: Peer, journal: Journal) -> None:
    channel = peer.adapter(credential=BAD)
    with pytest.raises(CredentialRefused):
        async with asyncio.timeout(patience(15)):
            await channel.run(journal)
    async with asyncio.timeout(patience(15)):
        assert isinstance(await channel.send(part(dm(peer), "hello")), NeedsOperator)
    assert peer.seen(dm(peer)) == []
    assert journal.events == []


@pytest.mark.rule("CH-22")
async def test_killed_before_the_commit_the_event_comes_again_and_is_one(peer: Peer, journal: Journal) -> None:
    journal.stuck_before = True
    async with connected(peer, journal):
        await peer.writes("hello", dm(peer))
        await asyncio.wait_for(journal.entered.wait(), patience(5))
    assert (journal.events, journal.cursor) == ([], "")
    journal.stuck_before = False
    async with connected(peer, journal):
        await journal.until(1)
    assert journal.texts == ["hello"]


@pytest.mark.rule("CH-23")
async def test_killed_after_the_commit_the_event_comes_again_as_a_duplicate(peer: Peer, journal: Journal) -> None:
    journal.stuck_after = True
    async with connected(peer, journal):
        await peer.writes("hello", dm(peer))
        await journal.until(1)
    journal.stuck_after, journal.cursor = False, ""  # what the platform was told last is from before
    async with connected(peer, journal):
        assert await journal.until_arrived(2) == [Arrival.NEW, Arrival.DUPLICATE]
    assert journal.texts == ["hello"]


@pytest.mark.rule("CH-24", "CH-10")
async def test_when_nothing_can_be_stored_nothing_is_lost(peer: Peer, journal: Journal) -> None:
    def full() -> None:
        raise StoreUnavailable("the disk is full")

    journal.before = full
    with nullcontext() if peer.capabilities.called else pytest.raises(StoreUnavailable):  # who is called answers nothing, and is called again
        async with connected(peer, journal):
            for n in range(3):
                await peer.writes(f"message {n}", dm(peer))
            await asyncio.wait_for(journal.entered.wait(), patience(5))
            await asyncio.sleep(0.05)
    assert (journal.events, journal.cursor) == ([], "")
    journal.before = lambda: None
    async with connected(peer, journal):
        await journal.until(3)
    assert journal.texts == ["message 0", "message 1", "message 2"]


@pytest.mark.rule("CH-25")
async def test_the_same_event_three_times_is_one_and_two_at_once_are_two_in_order(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal):
        post = await peer.writes("once", dm(peer))
        await peer.repeats(post)
        await peer.repeats(post, as_number=True)
        await journal.until_arrived(3)
        assert journal.texts == ["once"]
        await peer.writes("first", dm(peer))
        await peer.writes("second", dm(peer))
        await journal.until(3)
    assert journal.texts == ["once", "first", "second"]


@pytest.mark.rule("CH-26", "CH-2")
async def test_edits_deletions_and_moves_arrive_as_what_they_are(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal):
        post = await peer.writes("tea at 4", dm(peer))
        count = 1
        if EventKind.EDITED in peer.kinds:
            await peer.edits(post, "tea at 5")
            event = (await journal.until(count := count + 1))[-1]
            assert (event.kind, event.platform_message_id, event.text) == (EventKind.EDITED, post.message_id, "tea at 5")
        if EventKind.DELETED in peer.kinds:
            await peer.deletes(post)
            event = (await journal.until(count := count + 1))[-1]
            assert (event.kind, event.platform_message_id) == (EventKind.DELETED, post.message_id)
        if EventKind.MIGRATED in peer.kinds:
            group = peer.place(ChatType.GROUP)
            await peer.migrates(group, "g-new")
            event = (await journal.until(count + 1))[-1]
            assert (event.kind, event.chat_id, event.target) == (EventKind.MIGRATED, group.address.chat_id, "g-new")
    assert len({event.platform_event_id for event in journal.events}) == len(journal.events)


@pytest.mark.rule("CH-27", "CH-4")
async def test_what_cannot_be_read_is_kept_as_unknown_and_stops_nothing(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal):
        await peer.sends_strange("hologram")
        await peer.sends_broken()
        await peer.writes("still there?", dm(peer))
        strange, broken, good = await journal.until(3)
    assert (strange.kind, strange.hint) == (EventKind.UNKNOWN, "hologram")
    assert broken.kind is EventKind.UNKNOWN
    assert strange.text and broken.text, "the record is kept as it came"
    assert strange.platform_event_id != broken.platform_event_id
    assert (good.kind, good.text) == (EventKind.MESSAGE, "still there?")


@pytest.mark.rule("CH-28", "CH-3")
@pytest.mark.parametrize(
    ("kind", "how", "mentioned"),
    [
        (ChatType.DM, "plain", True),
        (ChatType.GROUP, "plain", False),
        (ChatType.GROUP, "mentions", True),
        (ChatType.GROUP, "answers us", True),
        (ChatType.GROUP, "answers another", False),
        (ChatType.THREAD, "plain", False),
        (ChatType.THREAD, "mentions", True),
        (ChatType.THREAD, "answers another", False),
    ],
)
async def test_who_is_spoken_to_and_where_is_told_right(peer: Peer, journal: Journal, kind: ChatType, how: str, mentioned: bool) -> None:
    if lacks(peer, "mentions") and kind is not ChatType.DM:
        pytest.skip("this platform has no mentions")
    if kind not in chats(peer):
        pytest.skip(f"this platform has no {kind} chats")
    place = peer.place(kind)
    async with connected(peer, journal):
        other = await peer.writes("earlier", place, sender="bob")
        await peer.writes(
            "what now?", place, mentions_us=how == "mentions", answers_us=how == "answers us", answers=other if how == "answers another" else None
        )
        event = (await journal.until(2))[-1]
    assert (event.chat_type, event.mentioned, event.text) == (kind, mentioned, "what now?")
    assert (event.chat_id, event.thread_id) == (place.address.chat_id, place.address.thread_id)
    if how.startswith("answers"):
        assert event.reply_to is not None
        assert event.reply_to.author_is_us == (how == "answers us")
        assert event.reply_to.excerpt
        assert event.reply_to.message_id
    else:
        assert event.reply_to is None


@pytest.mark.rule("CH-29", "CH-120")
async def test_bots_and_our_own_messages_are_told_apart_and_never_answered(peer: Peer, journal: Journal) -> None:
    if lacks(peer, "bots"):
        pytest.skip("this platform has no bots")
    group = peer.place(ChatType.GROUP if ChatType.GROUP in chats(peer) else ChatType.DM)
    async with connected(peer, journal):
        await peer.writes("beep", group, sender="robot", bot=True, mentions_us=True)
        await peer.writes("my own words", group, sender="us")
        robot, ours = await journal.until(2)
    assert (robot.is_bot, robot.is_us, ours.is_bot, ours.is_us) == (True, False, True, True)

    def verdict(event: InboundEvent, *, listed: bool) -> str:
        return decide(
            Facts(
                is_bot=event.is_bot, own_message=event.is_us, bot_listed=listed, role="owner", admitted=True, in_group=True, group_allowed=True,
                mentioned=True,
            )
        )  # fmt: skip

    assert (verdict(robot, listed=False), verdict(robot, listed=True)) == ("bot", "")
    assert (verdict(ours, listed=False), verdict(ours, listed=True)) == ("self", "self")


@pytest.mark.rule("CH-30", "CH-7")
async def test_files_come_with_their_message_and_can_be_fetched_within_the_limit(peer: Peer, journal: Journal) -> None:
    if lacks(peer, "files beside words"):
        pytest.skip("this platform has no files beside words")
    cat, dog = File(name="cat.png", data=b"\x89PNG cat"), File(name="dog.txt", data=b"a dog")
    async with connected(peer, journal) as channel:
        assert isinstance(channel, Fetching)
        await peer.writes("one", dm(peer), files=[cat])
        await peer.writes("several", dm(peer), files=[cat, dog])
        await peer.writes("", dm(peer), files=[dog])
        await peer.writes("bad name", dm(peer), files=[File(name="../../config.json", data=b"{}")])
        await peer.writes("gone", dm(peer), files=[File(name="gone.txt", data=b"x", broken=True)])
        one, several, alone, named, gone = map(cleaned, await journal.until(5))
        assert [await channel.fetch(file, 100) for file in (*one.attachments, *several.attachments)] == [cat.data, cat.data, dog.data]
        assert [file.name for file in several.attachments] == ["cat.png", "dog.txt"]
        assert (alone.text, len(alone.attachments)) == ("", 1)
        assert [file.name for file in named.attachments] == ["config.json"]
        for file, limit in ((dog, len(dog.data) - 1), (None, 100)):
            with pytest.raises(AttachmentRefused):
                await channel.fetch((alone if file else gone).attachments[0], limit)
        assert [file.stored_path for event in journal.events for file in event.attachments] == [""] * 6


WORDS = "😀 👨\u200d👩\u200d👧 你好 日本語 مرحبا שלום नमस्ते"


@pytest.mark.rule("CH-31", "CH-6", "CH-141")
async def test_every_script_goes_in_and_out_without_loss(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal) as channel:
        await peer.writes(WORDS, dm(peer))
        await peer.writes(f"{WORDS}\x00\ud83d end", dm(peer))
        whole, broken = map(cleaned, await journal.until(2))
        assert whole.text == WORDS
        assert broken.text == f"{WORDS}\ufffd end"
        assert isinstance(await channel.send(part(dm(peer), WORDS, part_id="p1")), Sent)
        assert isinstance(await channel.send(part(dm(peer), f"{WORDS}\x00\ud83d end", part_id="p2")), Sent)
    first, second = (seen.text for seen in peer.seen(dm(peer)))
    assert first == WORDS
    assert second.startswith(WORDS)
    assert second.endswith(" end")
    assert "\x00" not in second


# Out


@pytest.mark.rule("CH-32")
async def test_a_text_of_the_limit_is_one_message_and_one_unit_more_is_two(peer: Peer, journal: Journal) -> None:
    can = peer.capabilities
    async with connected(peer, journal) as channel:
        for longer, messages in ((0, 1), (1, 2)):
            text = "a" * (can.text_max + longer)
            pieces = render(text, can)
            assert len(pieces) == messages
            before = len(peer.seen(dm(peer)))
            for number, piece in enumerate(pieces):
                assert isinstance(await channel.send(part(dm(peer), piece.text, part_id=f"{longer}.{number}")), Sent)
            assert "".join(seen.text for seen in peer.seen(dm(peer))[before:]) == text
        before = len(peer.seen(dm(peer)))
        assert isinstance(await channel.send(part(dm(peer), "a" * (can.text_max + 1), part_id="raw")), Refused)
        assert len(peer.seen(dm(peer))) == before
        assert measure("a", can.text_unit) == 1


@pytest.mark.rule("CH-33", "CH-11")
@pytest.mark.parametrize("wait_s", [35, 149, 3 * 3600])
async def test_an_order_to_wait_is_handed_on_and_not_slept_out(peer: Peer, journal: Journal, wait_s: float) -> None:
    if lacks(peer, "order to wait"):
        pytest.skip("this platform has no order to wait")
    async with connected(peer, journal) as channel:
        peer.limits(wait_s)
        began = time.monotonic()
        assert await channel.send(part(dm(peer), "one")) == TryLater(wait_s)
        assert time.monotonic() - began < patience(AT_ONCE_S)
        assert peer.seen(dm(peer)) == []
        assert isinstance(await channel.send(part(dm(peer), "one")), Sent)


@pytest.mark.rule("CH-34", "CH-11")
@pytest.mark.parametrize(
    ("fault", "kind", "most"), [(Fault.UNREACHABLE, TryLater, 0), (Fault.CUT, Unknown, 1), (Fault.SERVER_ERROR, Unknown, 1)]
)
async def test_what_is_known_of_a_failed_send_is_told_and_no_more(
    peer: Peer, journal: Journal, fault: Fault, kind: type[object], most: int
) -> None:
    if lacks(peer, "refused connections") and fault is Fault.UNREACHABLE:
        pytest.skip("this platform has no refused connections")
    async with connected(peer, journal) as channel:
        peer.plan(fault)
        assert isinstance(await channel.send(part(dm(peer), "one")), kind)
    assert len(peer.seen(dm(peer))) <= most


@pytest.mark.rule("CH-35")
async def test_the_same_part_again_is_shown_once_where_there_is_a_key(peer: Peer, journal: Journal) -> None:
    if peer.capabilities.resend_key_s is None:
        pytest.skip("this platform knows no key")
    async with connected(peer, journal) as channel:
        peer.plan(Fault.CUT)
        assert isinstance(await channel.send(part(dm(peer), "one")), Unknown)
        outcome = await channel.send(part(dm(peer), "one"))
        assert outcome == Sent((peer.seen(dm(peer))[0].id,))
        assert isinstance(await channel.send(part(dm(peer), "one", part_id="p2")), Sent), "another part with the same words is another message"
    assert [seen.text for seen in peer.seen(dm(peer))] == ["one", "one"]


@pytest.mark.rule("CH-80", "CH-12")
async def test_what_arrived_can_be_looked_up_where_that_is_declared(peer: Peer, journal: Journal) -> None:
    if not peer.capabilities.reconcile:
        pytest.skip("this platform cannot be asked")
    since = datetime.now(UTC)
    async with connected(peer, journal) as channel:
        assert isinstance(channel, Reconcile)
        peer.plan(Fault.CUT)
        await channel.send(part(dm(peer), "arrived", part_id="p1"))
        assert await channel.find(part(dm(peer), "arrived", part_id="p1"), since) == (peer.seen(dm(peer))[0].id,)
        assert await channel.find(part(dm(peer), "never sent", part_id="p2"), since) is None


@pytest.mark.rule("CH-36")
async def test_an_edit_changes_repeats_and_misses(peer: Peer, journal: Journal) -> None:
    if lacks(peer, "edits of whole messages"):
        pytest.skip("this platform has no edits of whole messages")
    async with connected(peer, journal) as channel:
        if not isinstance(channel, Editing):
            assert peer.capabilities.edit_interval_s is None
            pytest.skip("this platform has no edits")
        sent = await channel.send(part(dm(peer), "one"))
        assert isinstance(sent, Sent)
        (message,) = sent.platform_ids
        for text in ("two", "two", "three"):
            assert isinstance(await channel.edit(dm(peer).address, message, part(dm(peer), text)), Sent)
            assert [seen.text for seen in peer.seen(dm(peer))] == [text]
        await peer.removes(message, dm(peer))
        missed = await channel.edit(dm(peer).address, message, part(dm(peer), "four"))
        assert isinstance(missed, Refused)
        assert missed.gone
        peer.plan(Fault.BLOCKED)
        refused = await channel.edit(dm(peer).address, message, part(dm(peer), "four"))
        assert isinstance(refused, Refused)
        assert not refused.gone


@pytest.mark.rule("CH-37")
async def test_typing_comes_and_goes_and_its_failure_changes_nothing(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal) as channel:
        if not isinstance(channel, Typing):
            assert peer.capabilities.typing_refresh_s is None
            pytest.skip("this platform shows no typing")
        for on in (True, True, False):
            await channel.typing(dm(peer).address, on)
        assert peer.typing(dm(peer)) in ([True, True, False], [True, True])  # some platforms let it fade by itself
        peer.fail_typing()
        try:
            await channel.typing(dm(peer).address, True)
        except (ChannelError, OSError):
            pass
        assert isinstance(await channel.send(part(dm(peer), "one")), Sent)


@pytest.mark.rule("CH-38")
@pytest.mark.parametrize(("fault", "kind"), [(Fault.BLOCKED, ChatType.DM), (Fault.REMOVED, ChatType.GROUP)])
async def test_where_we_are_not_wanted_a_send_is_refused_and_not_repeated(peer: Peer, journal: Journal, fault: Fault, kind: ChatType) -> None:
    if kind not in chats(peer):
        pytest.skip(f"this platform has no {kind} chats")
    place = peer.place(kind)
    async with connected(peer, journal) as channel:
        peer.plan(fault)
        outcome = await channel.send(part(place, "hello"))
        assert isinstance(outcome, Refused)
        assert outcome.reason
        assert not outcome.gone
        assert peer.seen(place) == [], "a second try would have been shown"


@pytest.mark.rule("CH-39")
async def test_formatting_that_is_refused_does_not_cost_the_words(peer: Peer, journal: Journal) -> None:
    async with connected(peer, journal) as channel:
        peer.plan(Fault.BAD_MARKUP)
        (piece,) = render("Some **bold** words and `code`.", peer.capabilities)
        outgoing = OutboundPart(
            part_id="p1", address=dm(peer).address, text=piece.text, entities=piece.entities, markup=peer.capabilities.markup
        )
        assert isinstance(await channel.send(outgoing), Sent)
    (seen,) = peer.seen(dm(peer))
    assert all(word in seen.text for word in ("Some", "bold", "words", "code"))


@pytest.mark.rule("CH-73", "CH-12", "CH-8")
async def test_an_optional_port_is_there_exactly_when_it_is_declared(peer: Peer, journal: Journal) -> None:
    can = peer.capabilities
    async with connected(peer, journal) as channel:
        post = await peer.writes("hello", dm(peer))
        await journal.until(1)
        assert channel.capabilities == can
        if can.edit_interval_s is not None:
            assert isinstance(channel, Editing)
        if can.typing_refresh_s is not None:
            assert isinstance(channel, Typing)
        if can.reconcile:
            assert isinstance(channel, Reconcile)
        if can.reactions:
            assert isinstance(channel, Reactions)
            assert isinstance(await channel.react(dm(peer).address, post.message_id, "👀"), Sent)


BUTTONS = ((Action("Forget", "key-1.0"), Action("Leave it", "key-1.1")), (Action("Approve 7", "key-2.0"), Action("Decline 7", "key-2.1")))
LABELS = [["Forget", "Leave it"], ["Approve 7", "Decline 7"]]


@pytest.mark.rule("CH-159", "CH-8")
@pytest.mark.parametrize("kind", ChatType)
async def test_buttons_bring_back_their_key_and_are_taken_away_a_row_at_a_time(peer: Peer, journal: Journal, kind: ChatType) -> None:
    if kind not in chats(peer):
        pytest.skip(f"this platform has no {kind} chats")
    place = peer.place(kind)
    async with connected(peer, journal) as channel:
        await peer.writes("hello", place, mentions_us=kind is not ChatType.DM)
        await journal.until(1)
        sent = await channel.send(replace(part(place, "Forget it? Write yes 4821."), actions=BUTTONS))
        assert isinstance(sent, Sent)
        assert [seen.text for seen in peer.seen(place)][-1] == "Forget it? Write yes 4821.", "the words are there in any case"
        assert isinstance(peer, Pressing) == peer.capabilities.buttons
        if not isinstance(peer, Pressing):
            return
        assert peer.buttons(place) == LABELS
        journal.verdict = lambda accepted: replace(accepted, aside="This button is for somebody else.")
        await peer.presses(place, "Forget", sender="bob")
        await until(lambda: any(event.kind is EventKind.ACTION for event in journal.events))
        pressed = next(event for event in journal.events if event.kind is EventKind.ACTION)
        assert (pressed.kind, pressed.hint, pressed.target) == (EventKind.ACTION, "button", "key-1.0")
        assert (pressed.chat_id, pressed.thread_id, pressed.chat_type) == (place.address.chat_id, place.address.thread_id, kind)
        await until(lambda: peer.asides() == ["This button is for somebody else."])
        assert peer.buttons(place) == LABELS, "what is not spent stays"
        journal.verdict = lambda accepted: replace(accepted, spent=True)
        await peer.presses(place, "Leave it")
        await until(lambda: peer.buttons(place) == LABELS[1:])
        await peer.presses(place, "Approve 7")
        await until(lambda: peer.buttons(place) == [])
        assert [event.target for event in journal.events if event.kind is EventKind.ACTION] == ["key-1.0", "key-1.1", "key-2.0"]
        assert peer.asides() == ["This button is for somebody else."]
        assert [seen.text for seen in peer.seen(place)][-1] == "Forget it? Write yes 4821."


# Life


@pytest.mark.rule("CH-40", "CH-9")
@pytest.mark.parametrize("when", ["idle", "receiving", "sending"])
async def test_an_adapter_ends_within_a_second_whatever_it_does_and_leaves_nothing(peer: Peer, journal: Journal, when: str) -> None:
    before = asyncio.all_tasks()
    journal.stuck_before = when == "receiving"
    async with connected(peer, journal) as channel:
        if when == "receiving":
            await peer.writes("hello", dm(peer))
            await asyncio.wait_for(journal.entered.wait(), patience(5))
        if when == "sending":
            peer.plan(Fault.HANGS)
            sending = asyncio.ensure_future(channel.send(part(dm(peer), "hello")))
            await asyncio.sleep(0.05)
            sending.cancel()
            done, _ = await asyncio.wait([sending], timeout=patience(1.0))
            assert done
            assert sending.cancelled()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.rule("CH-41")
async def test_after_half_an_hour_without_network_it_goes_on_by_itself(peer: Peer, journal: Journal, clock: FakeClock) -> None:
    if lacks(peer, "connection to lose"):
        pytest.skip("this platform has no connection to lose")
    lives: list[Channel] = []

    def build() -> Channel:
        lives.append(peer.adapter(cursor=journal.cursor, clock=clock))
        return lives[-1]

    supervisor = Supervisor(peer.account, build, clock=clock, backoff_s=(0.01,), check_s=0.01)

    async def turns(state: ChannelState) -> None:
        await until(lambda: supervisor.status().state is state)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(journal))
        await turns(ChannelState.READY)
        last_proof = clock()
        peer.network(False)
        clock.advance(seconds=1)
        await turns(ChannelState.DEGRADED)
        for _ in range(30):
            clock.advance(minutes=1)
            lived = len(lives)
            await until(lambda lived=lived: len(lives) > lived)
            status = supervisor.status()
            assert status.state is not ChannelState.READY
            assert status.proven_at is not None
            assert status.proven_at <= last_proof + timedelta(seconds=1)
        await peer.writes("are you back?", dm(peer))
        peer.network(True)
        await journal.until(1)
        await turns(ChannelState.DEGRADED)  # it fell more than six times within the hour, and works
        assert supervisor.status().proven_at == clock()
        assert journal.texts == ["are you back?"]
        clock.advance(minutes=61)
        await turns(ChannelState.READY)
        task.cancel()


@pytest.mark.rule("CH-42")
async def test_two_hundred_events_at_once_are_all_stored_in_order_and_leave_no_weight(peer: Peer) -> None:
    stored: dict[str, list[str]] = {}

    async def deliver(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]:
        for event in events:
            stored.setdefault(event.chat_id, []).append(event.text)
        return [Accepted(arrival=Arrival.NEW, delivery_id="d", state="new") for _ in events]

    def alive() -> int:
        gc.collect()
        return sum(isinstance(each, InboundEvent) for each in gc.get_objects())

    before = alive()
    places = [peer.place(kind) for kind in chats(peer)]
    channel = peer.adapter()
    for n in range(200):
        await peer.writes(f"{n}", places[n % len(places)])
    task = asyncio.ensure_future(channel.run(deliver))
    await until(lambda: sum(map(len, stored.values())) == 200)
    for first, place in enumerate(places):
        assert stored[place.address.chat_id] == [str(n) for n in range(first, 200, len(places))]
    await peer.writes("one more", places[0])
    await until(lambda: sum(map(len, stored.values())) == 201)
    assert alive() - before <= 5
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.rule("CH-43", "CH-160")
async def test_credentials_are_seen_nowhere(peer: Peer, journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[object] = []
    async with connected(peer, journal) as channel:
        await peer.writes("hello", dm(peer), files=[File(name="a.txt", data=b"a"), File(name="b.txt", data=b"b", broken=True)])
        await peer.sends_strange("hologram")
        await peer.sends_broken()
        await journal.until(3)
        for fault in (Fault.UNREACHABLE, Fault.CUT, Fault.SERVER_ERROR, Fault.BLOCKED, Fault.BAD_MARKUP, Fault.BAD_CREDENTIAL):
            peer.plan(fault)
            said.append(await channel.send(part(dm(peer), "words", part_id=fault.name)))
        if isinstance(channel, Fetching):
            for file in journal.events[0].attachments:
                try:
                    await channel.fetch(file, 1)
                except ChannelError as error:
                    said += [error, error.__cause__]
        said += [channel, channel.account]
    for attempt in (peer.adapter(credential=BAD), peer.adapter()):
        peer.network(attempt.proven_at is not None)
        trying = asyncio.ensure_future(attempt.run(journal))
        await _ended_or_quiet(trying, caplog)
        trying.cancel()
        try:
            await trying
        except (ChannelError, asyncio.CancelledError) as error:
            said += [error, error.__cause__, error.__context__]
    everything = "\n".join(
        [*(record.getMessage() for record in caplog.records), *(str(record.exc_info) for record in caplog.records)]
        + [f"{each!s} {each!r}" for each in said]
        + [str(to_json(event)) for event in journal.events]
    )
    for secret in peer.credentials:
        assert secret not in everything


async def _ended_or_quiet(trying: asyncio.Task[None], caplog: pytest.LogCaptureFixture) -> None:
    """Until the attempt has ended, or has nothing more to say: who is called waits for calls for ever."""
    async with asyncio.timeout(patience(5)):
        said = -1
        while not trying.done() and said != len(caplog.records):
            said = len(caplog.records)
            await asyncio.wait([trying], timeout=QUIET_S)
