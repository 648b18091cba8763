"""The live window trims by halves (WD-36 to WD-40, acceptance row A3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.window import TURNS_AT_MOST, TurnSize, edge_after_trim


def turns(number: int, tokens: int) -> list[TurnSize]:
    """So many turns of two messages each."""
    return [TurnSize(last_seq=2 * at + 2, tokens=tokens) for at in range(number)]


def leave(sizes: list[TurnSize], floor: int = 0) -> int:
    edge = edge_after_trim(sizes, max_turns=20, max_tokens=50_000, floor_tokens=floor)
    return sum(edge is not None and turn.last_seq <= edge for turn in sizes)


@pytest.mark.rule("WD-36")
@pytest.mark.parametrize(
    ("number", "tokens", "gone"),
    [(0, 0, 0), (1, 20, 0), (20, 20, 0), (21, 500, 10), (21, 20, 10), (8, 9_000, 4), (5, 10_000, 0), (5, 10_001, 2), (1, 90_000, 0), (2, 60_000, 1)],
)
def test_above_either_limit_the_oldest_half_leaves(number: int, tokens: int, gone: int) -> None:
    assert leave(turns(number, tokens)) == gone


@pytest.mark.rule("WD-37")
@pytest.mark.case("MD-18")
@pytest.mark.parametrize(("number", "tokens", "gone"), [(21, 20, 0), (31, 29, 0), (100, 20, 0), (101, 20, 50), (21, 500, 10), (6, 9_000, 3)])
def test_with_a_floor_short_talk_stays_until_five_times_the_turn_limit(number: int, tokens: int, gone: int) -> None:
    assert leave(turns(number, tokens), floor=8_000) == gone


@pytest.mark.case("MD-18")
def test_without_a_floor_31_short_turns_are_trimmed_once_and_not_again_the_turn_after() -> None:
    sizes = turns(31, 29)
    assert leave(sizes) == 15
    assert leave(sizes[15:]) == leave([*sizes[15:], *turns(4, 29)]) == 0


@pytest.mark.rule("WD-40")
def test_halving_repeats_until_it_fits_and_the_newest_turn_never_leaves() -> None:
    assert leave([*turns(7, 100), TurnSize(last_seq=99, tokens=60_000)]) == 7


SIZES = st.lists(st.integers(min_value=1, max_value=30_000), max_size=150)


@pytest.mark.rule("WD-36", "WD-40", "RL-50")
@given(SIZES, st.integers(min_value=1, max_value=40), st.integers(min_value=1_000, max_value=60_000), st.integers(min_value=0, max_value=60_000))
def test_what_stays_is_within_the_limits_and_never_more_than_needed_left(tokens: list[int], most: int, room: int, floor: int) -> None:
    sizes = [TurnSize(last_seq=at + 1, tokens=each) for at, each in enumerate(tokens)]
    edge = edge_after_trim(sizes, max_turns=most, max_tokens=room, floor_tokens=floor)
    kept = [turn for turn in sizes if edge is None or turn.last_seq > edge]
    size = sum(turn.tokens for turn in kept)
    if len(kept) > 1:
        assert size <= room
        assert len(kept) <= (most if size > floor else TURNS_AT_MOST * most)
    assert kept or not sizes
    # What stays needs no further trim: so the start of the prompt is the same until the next one.
    assert edge_after_trim(kept, max_turns=most, max_tokens=room, floor_tokens=floor) is None
