"""What happens to a part next: the state table of CH-80 and the expiry of CH-82, tried by a machine that plays every order of outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from channels.loopback import CAPABILITIES
from channels.port import Capabilities, ChatMoved, NeedsOperator, Refused, SendOutcome, Sent, TryLater, Unknown
from gateway.delivery.rules import (
    MARGIN_S,
    OPEN,
    RETRY_MAX_S,
    Change,
    Next,
    PartState,
    PartView,
    Step,
    backoff_s,
    next_step,
    settle,
    settle_look_up,
)

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
BARE = replace(CAPABILITIES, resend_key_s=None, reconcile=False)
KEYED = replace(BARE, resend_key_s=120.0)
LOOKING = replace(BARE, reconcile=True)


def part(state: PartState = PartState.QUEUED, **more: object) -> PartView:
    return replace(PartView(state=state, attempts=0, unknowns=0, expires_at=LATER), **more)


def unknown(**more: object) -> PartView:
    return part(PartState.UNKNOWN, **({"unknowns": 1, "attempts": 1, "attempted_at": NOW} | more))


# The table, row by row


@pytest.mark.rule("CH-80")
def test_a_queued_part_is_sent_when_the_gate_is_open() -> None:
    assert next_step(part(), NOW, BARE) == Next(step=Step.SEND)
    assert next_step(part(), NOW, BARE, closed_until=NOW + timedelta(seconds=9)) == Next(step=Step.WAIT, until=NOW + timedelta(seconds=9))
    assert next_step(part(not_before=NOW + timedelta(hours=3)), NOW, BARE) == Next(step=Step.WAIT, until=LATER)


@pytest.mark.rule("CH-80")
@pytest.mark.parametrize(
    ("outcome", "change"),
    [
        (Sent(("1", "2")), Change(state=PartState.SENT, platform_ids=("1", "2"))),
        (Refused("blocked"), Change(state=PartState.FAILED, reason="blocked")),
        (Refused("gone", gone=True), Change(state=PartState.FAILED, reason="gone")),
        (NeedsOperator("new token"), Change(state=PartState.QUEUED, reason="new token", stop_account="new token")),
        (NeedsOperator("scan", "scan"), Change(state=PartState.QUEUED, reason="scan", stop_account="scan", stop_code="scan")),
        (ChatMoved("c2"), Change(state=PartState.QUEUED, new_chat_id="c2")),
        (Unknown("cut"), Change(state=PartState.UNKNOWN, reason="cut", unknowns=1, not_before=NOW + timedelta(seconds=1))),
        (TryLater(), Change(state=PartState.QUEUED, reason="not reachable", not_before=NOW + timedelta(seconds=1 + MARGIN_S))),
    ],
)
def test_each_outcome_makes_its_change(outcome: SendOutcome, change: Change) -> None:
    assert settle(part(), outcome, NOW, jitter=0.0) == change


@pytest.mark.rule("CH-80", "CH-35")
def test_an_unknown_part_is_sent_again_under_its_key_while_that_is_valid() -> None:
    assert next_step(unknown(), NOW + timedelta(seconds=119), KEYED).step is Step.SEND
    assert next_step(unknown(), NOW + timedelta(seconds=120), KEYED).step is Step.SEND_MARKED
    assert next_step(unknown(), NOW + timedelta(seconds=120), replace(KEYED, reconcile=True)).step is Step.LOOK_UP


@pytest.mark.rule("CH-80")
def test_tries_under_a_key_do_not_use_up_the_one_marked_try() -> None:
    assert next_step(unknown(unknowns=7), NOW + timedelta(seconds=121), KEYED).step is Step.SEND_MARKED


@pytest.mark.rule("CH-80")
def test_an_unknown_part_is_looked_up_where_that_is_possible() -> None:
    assert next_step(unknown(), NOW, LOOKING).step is Step.LOOK_UP
    assert settle_look_up(unknown(), ("7",), NOW) == Change(state=PartState.SENT, platform_ids=("7",), unknowns=1)
    assert settle_look_up(unknown(), None, NOW) == Change(state=PartState.QUEUED, unknowns=1)
    nobody_says = settle_look_up(unknown(), Unknown("down"), NOW)
    assert (nobody_says.state, nobody_says.unknowns) == (PartState.UNKNOWN, 1)
    assert nobody_says.not_before is not None


@pytest.mark.rule("CH-80")
def test_an_unknown_part_that_nobody_knows_of_is_sent_once_more_and_says_so() -> None:
    assert next_step(unknown(), NOW, BARE).step is Step.SEND_MARKED
    assert next_step(unknown(unknowns=2, sent_again=True), NOW, BARE).step is Step.GIVE_UP


@pytest.mark.rule("CH-80")
@pytest.mark.parametrize("outcome", [TryLater(), TryLater(50), NeedsOperator("x"), ChatMoved("c2")])
def test_a_try_that_surely_failed_does_not_make_a_doubtful_part_a_fresh_one(outcome: SendOutcome) -> None:
    assert settle(unknown(), outcome, NOW, jitter=0).state is PartState.UNKNOWN
    assert settle(unknown(sent_again=True), outcome, NOW, jitter=0).state is PartState.QUEUED, "its words say what it is"
    assert settle(part(), outcome, NOW, jitter=0).state is PartState.QUEUED


@pytest.mark.rule("CH-97")
@pytest.mark.parametrize("unknowns", [1, 2, 5, 50])
def test_an_unanswered_edit_is_repeated_for_as_long_as_the_answer_is_worth_something(unknowns: int) -> None:
    edit = unknown(unknowns=unknowns, is_edit=True)
    assert next_step(edit, NOW, BARE).step is Step.SEND
    assert next_step(edit, LATER, BARE).step is Step.EXPIRE


@pytest.mark.rule("CH-97", "CH-80")
def test_a_preview_in_doubt_is_looked_for_and_never_sent_anew() -> None:
    doubt = unknown(is_preview=True)
    late = NOW + timedelta(seconds=121)
    streamed = replace(BARE, preview_key_s=330.0)
    assert [next_step(doubt, NOW, can).step for can in (BARE, KEYED, LOOKING)] == [Step.GIVE_UP, Step.SEND, Step.LOOK_UP]
    assert [next_step(doubt, late, can).step for can in (KEYED, replace(KEYED, reconcile=True))] == [Step.GIVE_UP, Step.LOOK_UP]
    assert next_step(doubt, late, streamed).step is Step.SEND, "a key of its own"
    assert next_step(unknown(), NOW, streamed).step is Step.SEND_MARKED, "which holds for previews alone"
    absent = settle_look_up(doubt, None, NOW)
    assert (absent.state, absent.not_there) == (PartState.FAILED, True)
    assert settle_look_up(doubt, ("7",), NOW).platform_ids == ("7",)


@pytest.mark.rule("CH-92", "CH-97")
@pytest.mark.parametrize("tried", [partial(settle, jitter=0.0), settle_look_up], ids=["sent", "looked for"])
def test_a_preview_in_doubt_holds_its_answer_back_for_seconds_only(tried: Callable[..., Change]) -> None:
    doubt, now = unknown(is_preview=True), NOW
    while (change := tried(doubt, Unknown("down"), now)).state is PartState.UNKNOWN:
        assert change.not_before is not None
        now, doubt = change.not_before, replace(doubt, unknowns=change.unknowns)
    assert (change.state, change.not_there) == (PartState.FAILED, False)
    assert now - NOW <= timedelta(seconds=5)


@pytest.mark.rule("CH-97", "CH-36")
def test_an_edit_whose_message_is_gone_becomes_a_new_message_with_a_clean_slate() -> None:
    assert settle(unknown(is_edit=True, unknowns=3), Refused("gone", gone=True), NOW, jitter=0) == Change(
        state=PartState.QUEUED, reason="gone", as_new=True
    )
    assert settle(unknown(is_edit=True), Refused("no rights"), NOW, jitter=0).state is PartState.FAILED


@pytest.mark.rule("CH-82", "CH-80")
@pytest.mark.parametrize("state", OPEN)
def test_nothing_is_sent_past_its_time(state: PartState) -> None:
    assert next_step(part(state), LATER, BARE).step is Step.EXPIRE
    assert next_step(part(state), LATER - timedelta(microseconds=1), BARE).step is not Step.EXPIRE


@pytest.mark.rule("CH-91", "CH-33")
@pytest.mark.parametrize("after", [1, 27, 149, 3 * 3600])
@given(jitter=st.floats(0, 1))
def test_a_wait_is_kept_whole_whatever_its_length(after: int, jitter: float) -> None:
    change = settle(part(), TryLater(after), NOW, jitter=jitter)
    assert change.not_before is not None
    wait = (change.not_before - NOW).total_seconds()
    assert after + MARGIN_S <= wait <= after * 1.1 + MARGIN_S
    assert change.gate_s == pytest.approx(wait)


def test_our_own_waits_double_up_to_a_minute() -> None:
    assert [backoff_s(tries) for tries in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff_s(10**6) == RETRY_MAX_S


def test_two_chats_that_name_each_other_do_not_make_a_storm() -> None:
    assert settle(part(), ChatMoved("b"), NOW, jitter=0).not_before is None
    again = settle(part(attempts=5), ChatMoved("a"), NOW, jitter=0).not_before
    assert again is not None
    assert again - NOW >= timedelta(seconds=30)


# Every order of outcomes


@dataclass
class World:
    """A platform that shows what reaches it, knows keys for their time, and can be asked what it shows."""

    can: Capabilities
    copies: int = 0
    marked: int = 0
    key_seen: datetime | None = None

    def arrives(self, now: datetime, *, marked: bool) -> None:
        key_s = self.can.resend_key_s
        if key_s is not None and self.key_seen is not None and now - self.key_seen < timedelta(seconds=key_s) and not marked:
            return
        self.key_seen = self.key_seen or now
        self.copies += 1
        self.marked += marked


class Sending(RuleBasedStateMachine):
    """One part from storing to its end, with kills in between; the outcomes are the machine's choice."""

    @initialize(can=st.sampled_from([BARE, KEYED, LOOKING, replace(KEYED, reconcile=True)]), edit=st.booleans())
    def store(self, can: Capabilities, edit: bool) -> None:
        self.now = NOW
        self.part = part(is_edit=edit)
        self.world = World(can)
        self.sends: list[tuple[Step, PartView]] = []
        self.known = False  # an answer said that it arrived

    @rule(seconds=st.sampled_from([0, 1, 30, 61, 121, 400]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(
        outcome=st.sampled_from([Sent(("1",)), TryLater(), TryLater(50), Unknown(), Refused("no"), NeedsOperator("x"), ChatMoved("c2")]),
        arrived=st.booleans(),
        killed=st.booleans(),
        answers=st.booleans(),
    )
    def step(self, outcome: SendOutcome, arrived: bool, killed: bool, answers: bool) -> None:
        if self.part.state not in OPEN:
            return
        following = next_step(self.part, self.now, self.world.can)
        match following.step:
            case Step.WAIT:
                assert following.until is not None
                assert self.now < following.until <= self.part.expires_at
                self.now = following.until
            case Step.EXPIRE:
                assert self.now >= self.part.expires_at
                self.take(Change(state=PartState.EXPIRED))
            case Step.GIVE_UP:
                self.take(Change(state=PartState.FAILED))
            case Step.LOOK_UP:
                found = (("1",) if self.world.copies else None) if answers else Unknown("down")
                self.take(settle_look_up(self.part, found, self.now))
            case Step.SEND | Step.SEND_MARKED:
                self.send(following.step, outcome, arrived=arrived, killed=killed)

    def send(self, step: Step, outcome: SendOutcome, *, arrived: bool, killed: bool) -> None:
        assert self.now < self.part.expires_at
        assert self.part.not_before is None or self.part.not_before <= self.now
        self.sends.append((step, self.part))
        marked = step is Step.SEND_MARKED
        first = self.part.attempted_at if self.part.unknowns else self.now
        self.part = replace(
            self.part, state=PartState.SENDING, attempts=self.part.attempts + 1, attempted_at=first, sent_again=self.part.sent_again or marked
        )
        shown = isinstance(outcome, Sent) or (isinstance(outcome, Unknown) and arrived)
        if shown and not self.part.is_edit:
            self.world.arrives(self.now, marked=self.part.sent_again)
        if killed:
            self.part = replace(self.part, state=PartState.UNKNOWN, unknowns=self.part.unknowns + 1)
            return
        self.known = isinstance(outcome, Sent)
        self.take(settle(self.part, outcome, self.now, jitter=0.5))

    def take(self, change: Change) -> None:
        self.part = replace(self.part, state=change.state, unknowns=change.unknowns, not_before=change.not_before)

    @invariant()
    def never_two_knowing_sends(self) -> None:
        if self.known:
            assert self.part.state is PartState.SENT

    @invariant()
    def a_second_copy_says_so(self) -> None:
        world = self.world
        if world.can.reconcile or self.part.is_edit:
            assert world.copies <= 1
        assert world.copies <= 2
        assert world.copies - world.marked <= 1
        assert sum(step is Step.SEND_MARKED for step, _ in self.sends) <= 1

    @invariant()
    def a_plain_send_of_what_may_have_arrived_needs_a_reason(self) -> None:
        for step, before in self.sends:
            if step is Step.SEND and before.state is PartState.UNKNOWN:
                assert before.is_edit or self.world.can.resend_key_s is not None


Sending.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestEveryOrderOfOutcomes = pytest.mark.rule("CH-80", "CH-82")(Sending.TestCase)
