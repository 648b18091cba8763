"""Window profiles: what leaves, and when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.profiles import BUILT_IN, MessageSize, edge_after, token_limit

ASSISTANT, COMPANION, CALENDAR = (BUILT_IN[name] for name in ("assistant", "companion", "calendar"))
LARGE = 1_000_000


def window(*sizes: int) -> list[MessageSize]:
    return [MessageSize(seq=at, tokens=size, turn_id=f"t{(at + 1) // 2}") for at, size in enumerate(sizes, 1)]


@pytest.mark.rule("RS-5")
@pytest.mark.parametrize(("context", "limit"), [(8_000, 2_000), (39_999, 9_999), (40_000, 10_000), (LARGE, 10_000)])
def test_a_companion_has_a_quarter_of_a_small_model_and_never_more_than_its_limit(context: int, limit: int) -> None:
    assert token_limit(COMPANION, context) == limit


@pytest.mark.rule("RS-6")
def test_fifty_one_messages_leave_forty_one_or_fifty() -> None:
    talk = window(*[5] * 51)
    assert edge_after(COMPANION, talk[:50], model_window=LARGE) is None
    assert edge_after(COMPANION, talk, model_window=LARGE) == 10
    one_by_one = BUILT_IN["companion"].__class__(name="own", messages=50, tokens=10_000, drop="block", block=1)
    assert edge_after(one_by_one, talk, model_window=LARGE) == 1


@pytest.mark.rule("RS-6")
def test_of_long_messages_so_few_leave_that_a_fifth_of_the_room_is_free() -> None:
    assert edge_after(COMPANION, window(*[900] * 12), model_window=LARGE) == 3


@pytest.mark.rule("RS-7")
def test_a_message_too_long_by_itself_is_sent_whole_and_alone() -> None:
    assert edge_after(COMPANION, window(10, 10, 12_000), model_window=LARGE) == 2
    assert edge_after(COMPANION, window(12_000), model_window=LARGE) is None


@pytest.mark.rule("RS-3")
@pytest.mark.parametrize(("turns", "edge"), [(20, None), (21, 20), (22, 22)])
def test_an_assistant_drops_half_of_its_turns(turns: int, edge: int | None) -> None:
    assert edge_after(ASSISTANT, window(*[10] * (2 * turns)), model_window=LARGE) == edge


@pytest.mark.rule("RS-53")
def test_days_are_no_matter_of_size() -> None:
    assert edge_after(CALENDAR, window(*[5_000] * 400), model_window=8_000) is None


@pytest.mark.rule("RS-5", "RS-6", "RS-7")
@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=120), st.integers(500, 100_000))
def test_what_stays_fits_and_no_more_leaves_than_a_block(sizes: list[int], context: int) -> None:
    talk = window(*sizes)
    edge = edge_after(COMPANION, talk, model_window=context)
    kept = [message for message in talk if message.seq > (edge or 0)]
    limit = token_limit(COMPANION, context)
    assert kept
    assert len(kept) == 1 or (len(kept) <= 50 and sum(message.tokens for message in kept) <= limit)
    if edge is not None:
        before = [message for message in talk if message.seq > max(0, edge - COMPANION.block)]
        assert len(before) > 50 or sum(message.tokens for message in before) > limit
