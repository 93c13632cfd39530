"""Many deadlines within one second: their lateness, and decisions meanwhile.

Lateness is the time after its deadline that a call still waits. The driver counts waiting calls every few milliseconds,
by the store's time. Meanwhile 100 decisions arrive each second, and their times run from their scheduled moments.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from redis.asyncio import Redis

from benchmarks.fills import fill
from benchmarks.measures import TIMEOUT_S, percentiles
from benchmarks.peers import Peer, SuspendedCall
from benchmarks.peers.processes import Running
from benchmarks.speed.open_loop import sleep_until
from sayso.core.clock import monotonic_ms
from service.core.settings.limits import TENANT
from service.core.store.keys import keys_of

WITHIN_MS = 1_000
DECISIONS_PER_S = 100

_KEYS = keys_of(TENANT)
_POLL_S = 0.01
_AHEAD_MS = 10_000
"""Time between the last suspension and the first deadline, at least."""

_IDLE_S = 3
_MEANWHILE_S = 6


async def measure_deadlines(peer: Peer, running: Running, count: int) -> dict[str, float]:
    """Return when all deadlines were applied, their lateness, and the time of decisions before and meanwhile."""
    began_ms = monotonic_ms()
    others = iter(await fill(running.url, "meanwhile-", DECISIONS_PER_S * (_IDLE_S + _MEANWHILE_S)))
    fill_ms = (monotonic_ms() - began_ms) / DECISIONS_PER_S / (_IDLE_S + _MEANWHILE_S) * count
    idle = await _decide(peer, others, asyncio.create_task(asyncio.sleep(_IDLE_S - 0.1)))
    async with Redis.from_url(running.url) as redis:
        due_ms = await _now_ms(redis) + _AHEAD_MS + round(1.5 * fill_ms)
        await fill(running.url, "late-", count, deadline_at_ms=due_ms, within_ms=WITHIN_MS)
        if await _now_ms(redis) > due_ms - _AHEAD_MS // 2:
            raise RuntimeError("this machine was too busy to suspend all runs in time; measure again")
        deadlines = [due_ms + WITHIN_MS * number // count for number in range(count)]
        watching = asyncio.create_task(_watch(redis, deadlines))
        await asyncio.sleep((due_ms - await _now_ms(redis)) / 1000)
        meanwhile = await _decide(peer, others, watching)
        applied = await watching
        await asyncio.wait_for(_drain(redis), TIMEOUT_S)
    late = [at_ms - due for at_ms, due in zip(applied, deadlines, strict=True)]
    return {
        "deadlines_applied_s": (applied[-1] - due_ms) / 1000,
        **percentiles("deadline_late", late),
        **percentiles("deadlines_idle_decide_call", idle),
        **percentiles("deadlines_decide_call", meanwhile),
    }


async def _decide(peer: Peer, suspended: Iterator[SuspendedCall], until: "asyncio.Task[object]") -> list[float]:
    """Decide 100 calls a second until the task is done or none is left; return their times, ms."""
    began_ms = monotonic_ms()
    under_way: list[asyncio.Task[float]] = []

    async def decide(one: SuspendedCall, due_ms: float) -> float:
        await peer.decide(one)
        return monotonic_ms() - due_ms

    while not until.done() and (one := next(suspended, None)):
        due_ms = began_ms + len(under_way) * 1000 / DECISIONS_PER_S
        await sleep_until(due_ms)
        under_way.append(asyncio.create_task(decide(one, due_ms)))
    return await asyncio.gather(*under_way)


async def _watch(redis: "Redis", deadlines: list[int]) -> list[int]:
    """Return for each deadline, in order, when it and all before it were applied."""
    applied: list[int] = []
    while len(applied) < len(deadlines):
        await asyncio.sleep(_POLL_S)
        async with redis.pipeline(transaction=False) as pipe:
            pipe.zcount(_KEYS.inbox, deadlines[0], deadlines[-1])
            pipe.time()
            waiting, (seconds, micros) = await pipe.execute()
        applied += [seconds * 1000 + micros // 1000] * (len(deadlines) - len(applied) - waiting)
    return applied


async def _drain(redis: "Redis") -> None:
    """Wait until workers have leased all decided runs, so that they do not disturb the next measurement."""
    while await redis.llen(_KEYS.ready):  # noqa: ASYNC110  the server has no notification of an empty list
        await asyncio.sleep(_POLL_S)


async def _now_ms(redis: "Redis") -> int:
    time: Any = await redis.time()
    return int(time[0]) * 1000 + int(time[1]) // 1000
