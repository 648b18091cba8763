"""Where the edge of the window jumps to (RS-67). Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.edge_jump import Turn, target

SIZES = st.lists(st.integers(1, 900), min_size=1, max_size=60)


def turns(*sizes: int) -> list[Turn]:
    return [Turn(2 * n + 2, size) for n, size in enumerate(sizes)]


@pytest.mark.rule("RS-67")
@given(sizes=SIZES, around=st.integers(0, 599))
def test_the_oldest_turn_that_leaves_the_prompt_under_sixty_percent(sizes: list[int], around: int) -> None:
    edge = target(turns(*sizes), around=around, ceiling=1_000)
    kept = [size for turn, size in zip(turns(*sizes), sizes, strict=True) if edge is None or turn.last_seq > edge]
    assert around + sum(kept) < 600, "one jump is enough"
    older = sizes[len(sizes) - len(kept) - 1 :]
    assert len(kept) == len(sizes) - 1 or around + sum(older) >= 600, "and no turn more than needed leaves"


@pytest.mark.rule("RS-67")
def test_what_comes_to_stand_for_them_counts() -> None:
    plain, told = (target(turns(*[100] * 10), around=100, ceiling=1_000, growth=lambda _, size=size: size) for size in (0, 150))
    assert (plain, told) == (12, 14)


@pytest.mark.rule("RS-67")
def test_where_the_rest_is_large_by_itself_the_turns_stay_under_sixty_percent_of_the_room_beside_it() -> None:
    assert target(turns(*[50] * 6), around=700, ceiling=1_000) == 6, "three of six: 150 of the 300 beside it"
    assert target(turns(50, 50), around=1_200, ceiling=1_000) == 4, "nothing helps, and all leave"
    assert target([], around=1_200, ceiling=1_000) is None


@pytest.mark.rule("RS-67", "RS-71")
@given(sizes=SIZES, around=st.integers(0, 599), least=st.integers(0, 200), share=st.integers(0, 99))
def test_what_stands_for_them_is_worked_out_a_few_times_and_the_edge_is_where_it_would_be(
    sizes: list[int], around: int, least: int, share: int
) -> None:
    asked: list[int] = []

    def growth(edge: int) -> int:
        asked.append(edge)
        return min(400, least + share * sum(sizes[: edge // 2]) // 100)

    found = target(turns(*sizes), around=around, ceiling=1_000, growth=growth)
    calls = len(asked)
    left, fits = sum(sizes), list[int]()
    for turn, size in zip(turns(*sizes), sizes, strict=True):
        left -= size
        if around + left + growth(turn.last_seq) < 600:
            fits.append(turn.last_seq)
    assert found == (fits[0] if fits else turns(*sizes)[-1].last_seq)
    assert calls <= 40


@pytest.mark.rule("RS-71")
def test_of_thousands_of_tiny_turns_it_is_worked_out_twice() -> None:
    asked: list[int] = []

    def growth(edge: int) -> int:
        asked.append(edge)
        return 4_000

    assert target(turns(*[10] * 4_000), around=1_000, ceiling=40_000, growth=growth) is not None
    assert len(asked) == 2
