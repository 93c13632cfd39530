"""Measurements of any peer: latency, throughput and memory."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.clients import Stamps
from benchmarks.peers import Peer, SuspendedCall
from sayso.clock import monotonic_ms

TIMEOUT_S = 60


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of all values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def repeat(count: int, at_once: int, step: Callable[[int], Awaitable[None]]) -> float:
    """Run `step` for 0..count-1, `at_once` at a time, and return the rate per second."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await step(number)

    began_ms = monotonic_ms()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return count / (monotonic_ms() - began_ms) * 1000


async def measure_suspensions(
    peer: Peer, prefix: str, count: int, at_once: int, size: int = 300
) -> tuple[float, list[SuspendedCall]]:
    """Return suspensions per second, and the suspended calls."""
    suspended: list[SuspendedCall] = []

    async def step(number: int) -> None:
        suspended.append(await peer.suspend(f"{prefix}{number}", size))

    return await repeat(count, at_once, step), suspended


async def measure_latency(peer: Peer, stamps: Stamps, prefix: str, count: int) -> tuple[list[float], list[float]]:
    """Return the time of each decision on an idle system, and from its request to the tool's start, ms."""
    calls: list[float] = []
    starts: list[float] = []
    for number in range(count):
        suspended = await peer.suspend(f"{prefix}{number}")
        started = stamps.expect(suspended.name)
        await asyncio.sleep(random.uniform(0.002, 0.012))  # noqa: S311  a random gap, not a secret
        began_ms = monotonic_ms()
        await peer.decide(suspended)
        calls.append(monotonic_ms() - began_ms)
        starts.append(await asyncio.wait_for(started, TIMEOUT_S) - began_ms)
    return calls, starts


async def measure_decisions(peer: Peer, suspended: Sequence[SuspendedCall], at_once: int) -> tuple[float, list[float]]:
    """Return decisions per second, and the time of each, ms."""
    calls: list[float] = []

    async def step(number: int) -> None:
        began_ms = monotonic_ms()
        await peer.decide(suspended[number])
        calls.append(monotonic_ms() - began_ms)

    return await repeat(len(suspended), at_once, step), calls


async def measure_holding(
    peer: Peer, resident_bytes: Callable[[str], int], prefix: str, count: int, at_once: int
) -> dict[str, float]:
    """Return the growth of service and workers per suspended run."""
    await measure_suspensions(peer, f"{prefix}-warm-", count // 4, at_once)
    before = {kind: resident_bytes(kind) for kind in ("service", "worker")}
    await measure_suspensions(peer, f"{prefix}-", count, at_once)
    return {f"{kind}_bytes_per_suspended_run": (resident_bytes(kind) - held) / count for kind, held in before.items()}


async def measure_cycles(peer: Peer, stamps: Stamps, prefix: str, count: int, at_once: int) -> float:
    """Return whole cycles per second: suspend, decide, tool started."""

    async def step(number: int) -> None:
        suspended = await peer.suspend(f"{prefix}{number}")
        started = stamps.expect(suspended.name)
        await peer.decide(suspended)
        await asyncio.wait_for(started, TIMEOUT_S)

    return await repeat(count, at_once, step)
