from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.throttle import Throttle

NOW = datetime(2026, 3, 14, tzinfo=UTC)


@pytest.mark.rule("WO-61")
def test_the_try_above_the_limit_waits_until_the_first_is_old() -> None:
    throttle = Throttle(3, timedelta(seconds=60))
    assert [throttle.take("ada", NOW + timedelta(seconds=n)) for n in range(3)] == [0.0, 0.0, 0.0]
    assert throttle.take("ada", NOW + timedelta(seconds=10)) == 50.0
    assert throttle.take("ben", NOW + timedelta(seconds=10)) == 0.0
    assert throttle.take("ada", NOW + timedelta(seconds=60)) == 0.0
    assert throttle.take("ada", NOW + timedelta(seconds=60)) == 1.0
    throttle.forget("ada")
    assert throttle.take("ada", NOW + timedelta(seconds=60)) == 0.0


def test_memory_is_bounded() -> None:
    throttle = Throttle(3, timedelta(seconds=60), keys_max=10)
    for number in range(1000):
        throttle.take(str(number), NOW)
    assert len(throttle) == 10


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 5), st.integers(1, 40))
def test_no_window_ever_holds_more_than_the_limit(steps: list[int], limit: int, window_s: int) -> None:
    throttle, window, now = Throttle(limit, timedelta(seconds=window_s)), timedelta(seconds=window_s), NOW
    taken: list[datetime] = []
    for step in steps:
        now += timedelta(seconds=step)
        wait_s = throttle.take("key", now)
        if wait_s == 0.0:
            taken.append(now)
        else:
            assert 0 < wait_s <= window_s
    assert all(sum(start <= at < start + window for at in taken) <= limit for start in taken)
