"""The measures, each over any peer: what a caller waits for, what the machine does in a second, what it holds."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.clients import Stamps
from benchmarks.peers import Parked, Peer
from sayso.clock import monotonic_ms

PATIENCE_S = 60


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of all values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def repeat(count: int, at_once: int, step: Callable[[int], Awaitable[None]]) -> float:
    """Run `step` for 0..count-1, so many at once, and return how many were done in a second."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await step(number)

    began_ms = monotonic_ms()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return count / (monotonic_ms() - began_ms) * 1000


async def measure_parking(
    peer: Peer, prefix: str, count: int, at_once: int, size: int = 300
) -> tuple[float, list[Parked]]:
    """Return parks a second, and what was parked."""
    parked: list[Parked] = []

    async def step(number: int) -> None:
        parked.append(await peer.park(f"{prefix}{number}", size))

    return await repeat(count, at_once, step), parked


async def measure_latency(peer: Peer, stamps: Stamps, prefix: str, count: int) -> tuple[list[float], list[float]]:
    """Return, one decision at a time on an idle system: each call's time, and from sending it to the tool's start."""
    calls: list[float] = []
    starts: list[float] = []
    for number in range(count):
        parked = await peer.park(f"{prefix}{number}")
        started = stamps.expect(parked.name)
        await asyncio.sleep(random.uniform(0.002, 0.012))  # noqa: S311  not for secrets: a random gap, as people leave
        began_ms = monotonic_ms()
        await peer.decide(parked)
        calls.append(monotonic_ms() - began_ms)
        starts.append(await asyncio.wait_for(started, PATIENCE_S) - began_ms)
    return calls, starts


async def measure_decisions(peer: Peer, parked: Sequence[Parked], at_once: int) -> tuple[float, list[float]]:
    """Return decisions a second, and the time of each call, ms."""
    calls: list[float] = []

    async def step(number: int) -> None:
        began_ms = monotonic_ms()
        await peer.decide(parked[number])
        calls.append(monotonic_ms() - began_ms)

    return await repeat(len(parked), at_once, step), calls


async def measure_holding(
    peer: Peer, resident_bytes: Callable[[str], int], prefix: str, count: int, at_once: int
) -> dict[str, float]:
    """Return by how much service and workers grow for each run that is suspended while they are at work."""
    await measure_parking(peer, f"{prefix}-warm-", count // 4, at_once)
    before = {kind: resident_bytes(kind) for kind in ("service", "worker")}
    await measure_parking(peer, f"{prefix}-", count, at_once)
    return {f"{kind}_bytes_per_suspended_run": (resident_bytes(kind) - held) / count for kind, held in before.items()}


async def measure_cycles(peer: Peer, stamps: Stamps, prefix: str, count: int, at_once: int) -> float:
    """Return whole cycles a second: park, decide, and the tool has started."""

    async def step(number: int) -> None:
        parked = await peer.park(f"{prefix}{number}")
        started = stamps.expect(parked.name)
        await peer.decide(parked)
        await asyncio.wait_for(started, PATIENCE_S)

    return await repeat(count, at_once, step)
