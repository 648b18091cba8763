"""How much of a prompt memory may take."""

from __future__ import annotations

import pytest

from memory.recall import block, budget


@pytest.mark.rule("RS-63")
@pytest.mark.parametrize(
    ("ceiling", "window", "reserve", "effective"),
    [(65_000, 1_000_000, 8_192, 65_000), (65_000, 32_000, 8_000, 23_360), (65_000, 8_000, 2_000, 5_744), (1_024, 200_000, 8_192, 1_024)],
)
def test_the_ceiling_is_the_setting_or_what_the_model_leaves(ceiling: int, window: int, reserve: int, effective: int) -> None:
    assert budget.effective_ceiling(ceiling, window, reserve) == effective


@pytest.mark.rule("RS-64")
def test_a_larger_ceiling_leaves_the_budget_alone_and_a_small_model_gives_a_quarter() -> None:
    assert budget.memory_budget(6_500, 65_000) == budget.memory_budget(6_500, 200_000) == 6_500
    assert budget.memory_budget(6_500, 5_744) == 1_436


@pytest.mark.rule("RS-65", "RS-66")
def test_standing_summaries_come_first_and_memory_passes_its_budget_a_little() -> None:
    assert budget.standing_room(6_500, 70) == 4_550
    rooms = [budget.recall_room(6_500, 2_000, standing, 65_000, 10_000) for standing in (0, 4_550, 6_500, 8_500, 9_000)]
    assert rooms == [8_500, 3_950, 2_000, 0, 0]
    assert budget.recall_room(6_500, 2_000, 0, 65_000, 64_900) == 100


@pytest.mark.rule("RS-32")
@pytest.mark.parametrize(("ceiling", "left", "room"), [(1_024, 5_000, 384), (5_000, 5_000, 750), (1_000_000, 5_000, 1_536), (65_000, 200, 200)])
def test_the_block_takes_a_share_within_its_limits(ceiling: int, left: int, room: int) -> None:
    assert block.room(ceiling, 384, 1_536, left) == room
