"""What may be sent to whom and how much of it: context tokens, their budget, the window, and what happens when they end (WX-40 to WX-45)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from channels.port import Refused, Sent, TryLater, Unknown
from channels.render import render
from channels.wechat.ilink.contexts import KEPT_MAX, Context, Contexts, Verdict, dumped, key, loaded, verdict
from channels.wechat.ilink.settings import BUDGET, CAPABILITIES
from tests.conftest import FakeClock
from tests.peers.wechat.ilink_desk import ANN, BOB, Desk, part
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.ilink_world import World

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
WAITS = TryLater(until_written=True)
MORE = "(More follows: write anything to get the rest.)"


@pytest.fixture
async def desk(clock: FakeClock) -> AsyncGenerator[Desk]:
    world = World(hold_s=0.05, rate_limited=False, clock=lambda: clock().timestamp())
    with FakeIlink(world) as server:
        found = Desk(server, clock)
        found.logged_in()
        yield found
        assert world.violations == []


def context(*, sent: int = 0, silent_s: float = 0) -> Context:
    return Context(token="t", received_at=NOW, last_inbound_at=NOW - timedelta(seconds=silent_s), sent=sent)


# Deciding


@pytest.mark.rule("WX-41", "WX-43", "WX-45")
@pytest.mark.parametrize(
    ("known", "fields", "decided"),
    [
        (None, {}, Verdict.WAIT),
        (context(), {}, Verdict.SEND),
        (context(), {"aside": True}, Verdict.SEND),
        (context(sent=BUDGET - 2), {"more_note": MORE}, Verdict.SEND),
        (context(sent=BUDGET - 2), {"aside": True}, Verdict.SEND),
        (context(sent=BUDGET - 1), {}, Verdict.SEND),
        (context(sent=BUDGET - 1), {"more_note": MORE}, Verdict.SEND_WITH_NOTE),
        (context(sent=BUDGET - 1), {"aside": True}, Verdict.WAIT),
        (context(sent=BUDGET), {}, Verdict.WAIT),
        (context(silent_s=24 * 3600 - 1), {}, Verdict.SEND),
        (context(silent_s=24 * 3600), {}, Verdict.WAIT),
    ],
)
def test_the_last_message_of_a_budget_is_kept_for_the_answer(known: Context | None, fields: dict[str, Any], decided: Verdict) -> None:
    assert verdict(known, part("x", **fields), NOW) is decided


@pytest.mark.rule("WX-40")
def test_a_context_reads_back_as_it_was_kept_and_rubbish_is_none() -> None:
    for kept in (context(sent=3), context().renewed("other", NOW)):
        assert loaded(dumped(kept)) == kept
    for rubbish in (None, b"", b"{", b"[]", b'{"token": "t"}', b'{"token":"t","received_at":"x","last_inbound_at":"x","sent_count":0}'):
        assert loaded(rubbish) is None


# Budget


@pytest.mark.rule("WX-41", "WX-174", "WX-14")
@pytest.mark.case("WE-31")
async def test_an_answer_of_eleven_pieces_ends_its_budget_with_a_word_that_more_follows(desk: Desk) -> None:
    pieces = [piece.text for piece in render("字" * 19_000, CAPABILITIES)]
    assert len(pieces) == 11
    async with desk.spoken_to() as channel:
        outcomes = [
            await channel.send(part(text, number=number, more_note=MORE if number < len(pieces) else "")) for number, text in enumerate(pieces, 1)
        ]
        assert [type(outcome) for outcome in outcomes[:8]] == [Sent] * 8
        assert outcomes[8:] == [WAITS] * 3
        assert desk.world.texts()[:7] == pieces[:7]
        assert desk.world.texts()[7] == f"{pieces[7]}\n\n{MORE}"
        assert len(desk.world.called("sendmessage")) == 8, "what must wait is not even tried"
        desk.server.says(ANN, "more")
        await desk.journal.until(2)
        assert [type(await channel.send(part(text, number=number))) for number, text in enumerate(pieces[8:], 9)] == [Sent] * 3
    assert "".join(desk.world.texts()).replace(f"\n\n{MORE}", "") == "字" * 19_000


@pytest.mark.case("WE-31")
def test_eleven_short_paragraphs_are_one_message() -> None:
    assert len(render("\n\n".join("a" * 100 for _ in range(11)), CAPABILITIES)) == 1


@pytest.mark.rule("WX-41")
async def test_notices_leave_the_last_message_to_the_answer(desk: Desk) -> None:
    async with desk.spoken_to(ANN, BOB) as channel:
        notices = [await channel.send(part("notice", number=number, aside=True)) for number in range(8)]
        assert [isinstance(outcome, Sent) for outcome in notices] == [True] * 7 + [False]
        assert isinstance(await channel.send(part("the answer", number=9)), Sent)
        assert await channel.send(part("one more", number=10)) == WAITS
        assert isinstance(await channel.send(part("hi", number=11, person=BOB)), Sent), "every person has a budget of their own"


@pytest.mark.rule("WX-40", "WX-41", "WX-43")
@pytest.mark.case("WE-30")
async def test_token_and_count_outlive_a_restart(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        for number in range(6):
            await channel.send(part("x", number=number))
    desk.advance(minutes=30)
    async with desk.connected() as channel:
        outcomes = [await channel.send(part("a job's words", number=number)) for number in (10, 11, 12)]
        assert [isinstance(outcome, Sent) for outcome in outcomes] == [True, True, False]
    desk.advance(hours=24)
    async with desk.connected() as channel:
        assert await channel.send(part("too late", number=13)) == WAITS
        assert await channel.send(part("a stranger", number=14, person="zoe@im.wechat")) == WAITS
    assert len(desk.world.shown) == 8


@pytest.mark.rule("WX-41")
async def test_what_provably_never_left_uses_nothing_up_and_what_may_have_left_does(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        desk.world.fail("sendmessage", *[{"retry_after": 3}] * 5)
        for number in range(5):
            assert await channel.send(part("x", number=number)) == TryLater(3)
        kept = loaded(desk.kept.entries[key(ANN)])
        assert kept is not None and kept.sent == 0
        desk.world.fail("sendmessage", {"cut": "after"})
        assert isinstance(await channel.send(part("x", number=9)), Unknown)
        kept = loaded(desk.kept.entries[key(ANN)])
        assert kept is not None and kept.sent == 1


# Tokens that age


@pytest.mark.rule("WX-42", "WX-175")
@pytest.mark.case("WE-32")
async def test_an_old_token_is_asked_about_once_before_it_is_used(desk: Desk) -> None:
    desk.world.token_life_s = 100
    desk.world.fresh_tokens = True
    async with desk.spoken_to() as channel:
        assert isinstance(await channel.send(part("at once")), Sent)
        assert desk.world.called("getconfig") == []
        desk.advance(seconds=180)
        outcomes = [await channel.send(part("after a long turn", number=number)) for number in (2, 3, 4)]
        assert all(isinstance(outcome, Sent) for outcome in outcomes)
        assert len(desk.world.called("getconfig")) == 1
    used = [call.body["msg"]["context_token"] for call in desk.world.called("sendmessage")]
    assert used[0] != used[1] == used[2] == used[3]
    kept = loaded(desk.kept.entries[key(ANN)])
    assert kept is not None and (kept.token, kept.sent) == (used[3], 4)


@pytest.mark.rule("WX-42")
async def test_when_nobody_can_say_the_old_token_is_used(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        desk.advance(seconds=180)
        desk.world.fail("getconfig", {"status": 500})
        assert isinstance(await channel.send(part("still here")), Sent)


@pytest.mark.rule("WX-45", "WX-44")
@pytest.mark.case("WE-32")
@pytest.mark.parametrize(("silent_s", "fresh", "tries", "kind"), [(180, True, 2, Sent), (180, False, 1, TryLater), (30, True, 1, TryLater)])
async def test_a_limit_is_met_with_one_fresh_token_or_with_silence(desk: Desk, silent_s: float, fresh: bool, tries: int, kind: type[object]) -> None:
    async with desk.spoken_to() as channel:
        desk.advance(seconds=silent_s)
        desk.world.fresh_tokens = fresh
        desk.world.fail("sendmessage", {"ret": -2, "errmsg": "prepare failed"})
        assert isinstance(outcome := await channel.send(part("x")), kind)
        assert len(desk.world.called("sendmessage")) == tries
        if kind is TryLater:
            assert outcome == WAITS
            assert await channel.send(part("y", number=2)) == WAITS, "each repeat would prolong the limit"
            assert len(desk.world.called("sendmessage")) == tries
            desk.server.says(ANN, "and?")
            await desk.journal.until(2)
            assert isinstance(await channel.send(part("x")), Sent)


@pytest.mark.rule("WX-45")
async def test_a_second_refusal_of_a_fresh_token_ends_it(desk: Desk) -> None:
    desk.world.fresh_tokens = True
    async with desk.spoken_to() as channel:
        desk.advance(seconds=180)
        desk.world.fail("sendmessage", {"ret": -2}, {"errcode": -2})
        assert await channel.send(part("x")) == WAITS
        assert len(desk.world.called("sendmessage")) == 2


@pytest.mark.rule("WX-174")
async def test_the_fake_refuses_what_the_platform_would(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        for number in range(8):
            await channel.send(part("x", number=number))
        newest = desk.world.feed[-1]["context_token"]

    def sent(token: str, *, to: str = ANN, items: int = 1, client: str = "c", text: str = "x") -> int:
        message = {
            "from_user_id": "", "to_user_id": to, "client_id": client, "message_type": 2, "message_state": 2, "context_token": token,
            "item_list": [{"type": 1, "text_item": {"text": text}}] * items,
        }  # fmt: skip
        return int(desk.world.sent({"msg": message}).get("ret", 0))

    assert [sent(newest, items=0), sent(newest, items=2), sent(newest, text="x" * 2049)] == [-3, -3, -3]
    assert [sent(""), sent("made up"), sent(newest, to=BOB)] == [-2, -2, -2]
    assert [sent(newest, client=f"c{n}") for n in range(4)] == [0, 0, -2, -2], "ten on a token"
    assert sent(newest, client="c1") == 0, "a known client id gets the same answer"
    assert len(desk.world.shown) == 10
    fresh = desk.world.issue(ANN)
    desk.world.rate_limited = True
    assert [sent(fresh, client=f"d{n}") for n in range(4)] == [0, 0, 0, -2], "three in a second"
    desk.advance(hours=25)
    assert sent(fresh, client="e") == -2
    assert sent(desk.world.issue(ANN), client="f", text="1 < 2") == 0
    assert desk.world.texts()[-1] == "1 "


# Pace


@pytest.mark.rule("WX-38", "CH-11")
async def test_messages_to_one_person_keep_a_second_apart_without_anybody_sleeping(desk: Desk) -> None:
    desk.pace_s = 1
    desk.world.rate_limited = True
    async with desk.spoken_to(ANN, BOB) as channel:
        assert isinstance(await channel.send(part("one")), Sent)
        desk.advance(seconds=0.25)
        assert await channel.send(part("two", number=2)) == TryLater(0.75)
        assert isinstance(await channel.send(part("for bob", number=3, person=BOB)), Sent)
        desk.advance(seconds=0.75)
        assert isinstance(await channel.send(part("two", number=2)), Sent)
        assert isinstance(await channel.send(part("x" * 1801, number=4)), Refused)


# What is written when


async def test_a_send_that_was_under_way_when_the_person_wrote_does_not_undo_the_new_context() -> None:
    kept = Kept()
    contexts = Contexts(kept)
    async with contexts.arriving({ANN: "old"}, NOW) as entries:
        await kept.put(entries)
    old = await contexts.of(ANN)
    assert old is not None
    async with contexts.arriving({ANN: "new"}, NOW + timedelta(seconds=5)) as entries:
        await contexts.keep(ANN, old.used(), instead_of=old)
        await kept.put(entries)
    await contexts.keep(ANN, old.spent(), instead_of=old)
    for look in (contexts, Contexts(kept)):
        found = await look.of(ANN)
        assert found is not None and (found.token, found.sent) == ("new", 0)


async def test_a_batch_that_was_not_stored_changes_nothing() -> None:
    contexts = Contexts(Kept())
    with pytest.raises(OSError):
        async with contexts.arriving({ANN: "t"}, NOW):
            raise OSError
    assert await contexts.of(ANN) is None


async def test_only_so_many_people_are_held_in_memory() -> None:
    kept = Kept()
    contexts = Contexts(kept)
    people = {f"p{number}@im.wechat": "t" for number in range(KEPT_MAX + 50)}
    async with contexts.arriving(people, NOW) as entries:
        await kept.put(entries)
    assert len(contexts._known) == KEPT_MAX  # pyright: ignore[reportPrivateUsage]
    assert (await asyncio.gather(contexts.of("p0@im.wechat")))[0] is not None
