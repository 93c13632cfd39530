"""Measure many deadlines within one second: their lateness, and decisions meanwhile.

Lateness is the time after its deadline that a call still waits. The driver counts waiting calls every few milliseconds,
by the store's time.

`python -m benchmarks.deadlines [COUNT [WITHIN_MS]]` runs this alone; within 0 ms all deadlines are at one moment.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvloop
from redis.asyncio import Redis

from benchmarks.clients import Stamps
from benchmarks.fills import fill
from benchmarks.measures import TIMEOUT_S, measure_decisions, quantile
from benchmarks.peers import Peer, Running, SuspendedCall, connect_sayso, running_sayso
from sayso.clock import monotonic_ms

COUNT = 10_000
WITHIN_MS = 1_000

_PORT = 17_741
_POLL_S = 0.01
_AHEAD_MS = 10_000
"""Time between the last suspension and the first deadline, at least."""

_IDLE = 50
_MEANWHILE = 600


async def measure_deadlines(peer: Peer, running: Running, count: int, within_ms: int = WITHIN_MS) -> dict[str, float]:
    """Return when all deadlines were applied, their lateness, and the time of decisions meanwhile."""
    began_ms = monotonic_ms()
    others = await fill(running.url, "meanwhile-", _IDLE + _MEANWHILE)
    fill_ms = (monotonic_ms() - began_ms) / len(others) * count
    _, idle = await measure_decisions(peer, others[:_IDLE], 1)
    async with Redis.from_url(running.url) as redis:
        due_ms = await _now_ms(redis) + _AHEAD_MS + round(1.5 * fill_ms)
        await fill(running.url, "late-", count, deadline_at_ms=due_ms, within_ms=within_ms)
        if await _now_ms(redis) > due_ms - _AHEAD_MS // 2:
            raise RuntimeError("this machine was too busy to suspend all runs in time; measure again")
        deadlines = [due_ms + within_ms * number // count for number in range(count)]
        watching = asyncio.create_task(_watch(redis, deadlines))
        await asyncio.sleep((due_ms - await _now_ms(redis)) / 1000)
        calls = await _decide_meanwhile(peer, others[_IDLE:], watching)
        applied = await watching
        await asyncio.wait_for(_drain(redis), TIMEOUT_S)
    late = [at_ms - due for at_ms, due in zip(applied, deadlines, strict=True)]
    return {
        "deadlines_10k_s": (applied[-1] - due_ms) / 1000,
        "deadline_lateness_p50_ms": quantile(late, 0.5),
        "deadline_lateness_p99_ms": quantile(late, 0.99),
        "decide_call_p50_ms_at_deadlines": quantile(calls, 0.5),
        "decide_call_p99_ms_at_deadlines": quantile(calls, 0.99),
        "decide_at_deadlines_over_idle": quantile(calls, 0.99) / quantile(idle, 0.5),
    }


async def _decide_meanwhile(
    peer: Peer, suspended: list[SuspendedCall], watching: "asyncio.Task[list[int]]"
) -> list[float]:
    """Decide one by one until all deadlines are applied; return the time of each call, ms."""
    calls: list[float] = []
    for one in suspended:
        calls += (await measure_decisions(peer, [one], 1))[1]
        if watching.done():
            break
    return calls


async def _watch(redis: "Redis", deadlines: list[int]) -> list[int]:
    """Return for each deadline, in order, when it and all before it were applied."""
    applied: list[int] = []
    while len(applied) < len(deadlines):
        await asyncio.sleep(_POLL_S)
        async with redis.pipeline(transaction=False) as pipe:
            pipe.zcount("sayso:{default}:inbox", deadlines[0], deadlines[-1])
            pipe.time()
            waiting, (seconds, micros) = await pipe.execute()
        applied += [seconds * 1000 + micros // 1000] * (len(deadlines) - len(applied) - waiting)
    return applied


async def _drain(redis: "Redis") -> None:
    """Wait until workers have leased all decided runs, so that they do not disturb the next measurement."""
    while await redis.llen("sayso:{default}:ready"):  # noqa: ASYNC110  the server has no notification of an empty list
        await asyncio.sleep(_POLL_S)


async def _now_ms(redis: "Redis") -> int:
    time: Any = await redis.time()
    return int(time[0]) * 1000 + int(time[1]) // 1000


async def _main(count: int, within_ms: int) -> None:
    stamps = Stamps()
    await stamps.listen()
    with tempfile.TemporaryDirectory() as home, running_sayso(Path(home), _PORT, stamps.path, "always") as running:
        peer, connections = await connect_sayso(running, 16)
        print(json.dumps(await measure_deadlines(peer, running, count, within_ms)))
        for connection in connections:
            await connection.close()


if __name__ == "__main__":
    arguments = [*map(int, sys.argv[1:])]
    uvloop.run(_main(*(arguments + [COUNT, WITHIN_MS][len(arguments) :])))
