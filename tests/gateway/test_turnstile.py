"""Turns prepare in the order in which they came, a few at once, and none waits long for another (RL-8)."""

from __future__ import annotations

import asyncio
import random

import pytest

from gateway.turnstile import Turnstile
from tests.patience import patience

NEVER_S = 3600.0


@pytest.mark.rule("RL-8")
async def test_a_few_enter_at_once_and_the_others_in_the_order_in_which_they_came() -> None:
    stile, entered = Turnstile(at_once=2, gives_way_s=NEVER_S), list[int]()

    async def turn(number: int) -> None:
        place = await stile.enter()
        entered.append(number)
        await asked[number].wait()
        place.leave()
        place.leave()  # a place is left once, however often it is said

    asked = [asyncio.Event() for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(turn(number)) for number in range(5)]
        await asyncio.sleep(0)
        assert entered == [0, 1]
        for number, after in ((1, [0, 1, 2]), (0, [0, 1, 2, 3]), (3, [0, 1, 2, 3, 4])):
            asked[number].set()
            await tasks[number]
            await asyncio.wait(tasks, timeout=0)
            assert entered == after
        for event in asked:
            event.set()


@pytest.mark.rule("RL-8", "RL-36")
async def test_what_takes_long_gives_its_place_away() -> None:
    stile = Turnstile(at_once=1, gives_way_s=0.0)
    slow = await stile.enter()
    async with asyncio.timeout(5):
        for _ in range(20):
            await stile.enter()  # and none of them says that it leaves
    slow.leave()
    only = Turnstile(at_once=1, gives_way_s=NEVER_S)
    place = await only.enter()
    place.leave()
    again = await only.enter()
    place.leave()  # not the place of another
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await only.enter()
    again.leave()


@pytest.mark.rule("RL-8", "CH-64")
@pytest.mark.parametrize("seed", range(12))
async def test_whatever_is_cancelled_while_it_waits_or_prepares_no_place_is_lost_and_none_is_made(seed: int) -> None:
    chance, stile = random.Random(seed), Turnstile(at_once=3, gives_way_s=0.01)

    async def turn(breaks: bool) -> None:
        place = await stile.enter()
        await asyncio.sleep(chance.random() / 200)
        if breaks:
            raise RuntimeError
        place.leave()

    tasks = [asyncio.create_task(turn(chance.random() < 0.3)) for _ in range(60)]
    for _ in range(30):
        await asyncio.sleep(0)
        chance.choice(tasks).cancel()
    async with asyncio.timeout(patience(5)):
        await asyncio.wait(tasks)
        await asyncio.sleep(0.05)  # until the places of those that broke are given away
        held = [await stile.enter() for _ in range(3)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stile.enter()
    for place in held:
        place.leave()
    for task in tasks:
        if not task.cancelled():
            task.exception()
