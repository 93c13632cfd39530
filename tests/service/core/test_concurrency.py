"""Many requests at once are let in by turns of the event loop, in order."""

import asyncio
from itertools import pairwise
from weakref import WeakSet

import pytest

from service.core.concurrency import Turnstile, release_apart


async def count_turns(entered: list[int], turns: list[int], count: int) -> None:
    """Note at each turn of the event loop how many have entered, until all have."""
    while len(entered) < count:
        turns.append(len(entered))
        await asyncio.sleep(0)  # the next turn


async def test_the_first_caller_of_a_turn_does_not_wait() -> None:
    turnstile = Turnstile()
    with pytest.raises(StopIteration):  # its first step is its last: it waits for nothing
        turnstile.enter().send(None)


async def test_callers_enter_in_order_and_others_run_in_between() -> None:
    turnstile, entered, turns = Turnstile(), list[int](), list[int]()

    async def enter(number: int) -> None:
        await turnstile.enter()
        entered.append(number)

    await asyncio.gather(*map(enter, range(40)), count_turns(entered, turns, 40))
    assert entered == [*range(40)]
    steps = [after - before for before, after in pairwise(turns)]
    assert max(steps) <= 3  # one, and a sixteenth of at most 39
    assert sum(step > 0 for step in steps) > 20


async def test_a_caller_that_is_gone_is_passed_over() -> None:
    turnstile = Turnstile()
    first, gone, last = (asyncio.create_task(turnstile.enter()) for _ in range(3))
    await first
    gone.cancel()
    await asyncio.wait_for(last, 30)
    assert gone.cancelled()
    await asyncio.wait_for(turnstile.enter(), 30)


class Large:
    """A value that can be watched."""


async def test_released_values_are_freed_one_at_each_turn() -> None:
    values = [Large() for _ in range(3)]
    seen = WeakSet(values)
    release_apart(values)
    values.clear()
    assert len(seen) == 3, "the caller has not returned yet"
    counts = []
    async with asyncio.timeout(5):
        while seen:
            await asyncio.sleep(0)
            counts.append(len(seen))
    assert [*dict.fromkeys(counts)] == [3, 2, 1, 0]
