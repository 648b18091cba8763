"""Three unclean ends within five minutes park what earlier runs left, until the operator decides (CH-102): the pure part, and its row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway import lifecycle
from gateway.lifecycle import Life, begun
from memory.database import Database
from tests.conftest import FakeClock


def runs(clock: FakeClock, life: Life, *lasted_s: float) -> Life:
    """The life after runs that lasted so long and then vanished, each started again at once."""
    for seconds in lasted_s:
        clock.advance(seconds=seconds)
        life = begun(life, clock.now)
    return life


@pytest.mark.rule("CH-102")
@pytest.mark.parametrize(
    ("lasted_s", "parked"),
    [
        pytest.param([], False, id="the first start"),
        pytest.param([1, 1], False, id="two crashes"),
        pytest.param([1, 1, 1], True, id="three crashes at once"),
        pytest.param([86_400, 1, 1], True, id="the first of them after a good day: ends count, not starts"),
        pytest.param([86_400, 149, 149], True, id="three ends in just under five minutes"),
        pytest.param([86_400, 151, 151], False, id="three ends in just over five minutes"),
        pytest.param([240, 240, 240, 240], False, id="one each four minutes"),
        pytest.param([1, 1, 1, 86_400], True, id="only the operator lets go on, not time"),
    ],
)
def test_unclean_ends_within_five_minutes_are_counted(clock: FakeClock, lasted_s: list[float], parked: bool) -> None:
    assert runs(clock, begun(Life(), clock.now), *lasted_s).parked is parked


@pytest.mark.rule("CH-102")
def test_a_clean_end_is_none_of_the_three(clock: FakeClock) -> None:
    life = runs(clock, begun(Life(), clock.now), 1, 1)
    clean = begun(Life(parked=life.parked), clock.now)
    assert not runs(clock, clean, 1, 1).parked


@pytest.mark.rule("CH-102")
async def test_a_restart_is_no_decision_and_a_release_is_one(database: Database, clock: FakeClock) -> None:
    def start() -> bool:
        return database.write_now(lambda connection: lifecycle.start(connection, clock.now))

    def stop() -> None:
        database.write_now(lambda connection: lifecycle.stop(connection, clock.now))

    assert [start() for _ in range(4)] == [False, False, False, True]
    stop()
    assert start()
    stop()
    clock.advance(timedelta(days=1))
    assert start()
    database.write_now(lambda connection: lifecycle.release(connection, clock.now))
    assert not start()  # a crash after it counts as the first
    stop()
    assert not start()


@pytest.mark.rule("CH-102")
async def test_what_is_remembered_survives_the_database(database: Database, clock: FakeClock) -> None:
    life = Life(running_since=clock.now, unclean=(clock.now - timedelta(seconds=90), clock.now), parked=True)
    database.write_now(lambda connection: lifecycle.save(connection, life, clock.now))
    assert database.write_now(lifecycle.load) == life
