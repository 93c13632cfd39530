"""Arithmetic and loops that all measurements share."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count, takewhile
from math import ceil

from sayso.core.clock import monotonic_ms

TIMEOUT_S = 60


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def percentiles(name: str, took_ms: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile of times as two figures."""
    return {f"{name}_p50_ms": quantile(took_ms, 0.5), f"{name}_p99_ms": quantile(took_ms, 0.99)}


async def repeat(numbers: int, at_once: int, step: Callable[[int], Awaitable[None]]) -> float:
    """Run `step` for 0..numbers-1, `at_once` at a time, and return the rate per second."""
    return (await _run(range(numbers), at_once, step))[1]


async def repeat_for(duration_s: float, at_once: int, step: Callable[[int], Awaitable[None]]) -> tuple[int, float]:
    """Run `step` with growing numbers, `at_once` at a time, until the time is over; return their count and rate."""
    until_ms = monotonic_ms() + duration_s * 1000
    return await _run(takewhile(lambda _: monotonic_ms() < until_ms, count()), at_once, step)


async def _run(numbers: Iterable[int], at_once: int, step: Callable[[int], Awaitable[None]]) -> tuple[int, float]:
    remaining, done = iter(numbers), count()

    async def work() -> None:
        for number in remaining:
            await step(number)
            next(done)

    began_ms = monotonic_ms()
    await asyncio.gather(*(work() for _ in range(at_once)))
    total = next(done)
    return total, total / (monotonic_ms() - began_ms) * 1000
