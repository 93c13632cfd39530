"""In a rush of deadlines counting and the ready list wait, and never for long."""

import asyncio

import pytest
from redis.asyncio import Redis

from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.insights.store import Counters
from tests.builders import approve, ask, make_pending
from tests.waits import until
from tests.workers.runs import draining
from workers.clock import ticks as rushes
from workers.clock.ticks import LONGEST_RUSH_MS, Rush
from workers.outbox import Counting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time, ms, that a rush reads, as a list of one."""
    at_ms = [100_000.0]
    monkeypatch.setattr(rushes, "monotonic_ms", lambda: at_ms[0])
    return at_ms


def is_calm(rush: Rush) -> bool:
    return rush._calm.is_set()


async def test_lateness_is_a_rush_and_ends_with_it(wiring: Wiring) -> None:
    rush = Rush(wiring.schedule)
    await rush.note(5)
    assert is_calm(rush)
    assert not await wiring.schedule.is_rush()
    await rush.note(80)
    assert not is_calm(rush)
    assert await wiring.schedule.is_rush()
    await rush.note(0)
    assert is_calm(rush)

    async def is_over() -> bool:
        return not await wiring.schedule.is_rush()

    await until(is_over)


async def test_a_clock_that_stays_late_starves_nobody(wiring: Wiring, clock: list[float]) -> None:
    rush = Rush(wiring.schedule)
    await rush.note(80)
    clock[0] += LONGEST_RUSH_MS + 1
    await rush.note(3_000)
    assert is_calm(rush)
    for _ in range(5):
        clock[0] += 9_000
        await rush.note(3_000)
        assert is_calm(rush), "it was late all the time"
    clock[0] += 10_001
    await rush.note(80)
    assert not is_calm(rush), "another rush"


async def test_counting_pauses_between_batches(wiring: Wiring) -> None:
    for _ in range(3):
        await make_pending(wiring, ask())
    rush = Rush(wiring.schedule)
    await rush.note(80)
    counting = asyncio.create_task(Counting(wiring, rush.wait_over).count_waiting())

    async def are_counted() -> bool:
        return not await wiring.part(Counters).waiting()

    await until(are_counted)
    assert not counting.done()
    await rush.note(0)
    assert await counting == 3


async def test_a_worker_takes_no_more_of_a_long_list_in_a_rush(
    wiring: Wiring, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        await approve(wiring, await make_pending(wiring))
    await wiring.schedule.announce_rush(60_000)
    looks, look = [], wiring.schedule.is_rush

    async def look_and_count() -> bool:
        looks.append(await look())
        return looks[-1]

    async def has_looked_again() -> bool:
        return len(looks) > 3

    async def is_empty() -> bool:
        return (await wiring.schedule.read_queue()).runs == 0

    monkeypatch.setattr(wiring.schedule, "is_rush", look_and_count)
    async with draining(wiring):
        await until(has_looked_again)
        assert (await wiring.schedule.read_queue()).runs == 12, "it had taken its fill, eight, before"
        await redis.delete(TenantKeys(TENANT).rush)
        await until(is_empty)
