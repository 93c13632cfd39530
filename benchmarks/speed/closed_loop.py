"""Sixteen clients, each of which waits for one answer before its next request."""

import asyncio

from benchmarks.clients import Stamps
from benchmarks.measures import TIMEOUT_S, percentiles, repeat, repeat_for
from benchmarks.peers import Peer, SuspendedCall
from benchmarks.peers.processes import Running
from sayso.core.clock import monotonic_ms

AT_ONCE = 16
_WARM_UP = 100
_SIZE = 1000


async def measure_cycles(
    peer: Peer, running: Running, stamps: Stamps, duration_s: float, prefix: str = ""
) -> dict[str, float]:
    """Return whole cycles (suspend, decide, tool started) per second, and the processor time of one by process."""

    async def step(number: int) -> None:
        suspended = await peer.suspend(f"{prefix}cycle{number}-")
        started = stamps.expect(suspended.name)
        await peer.decide(suspended)
        await asyncio.wait_for(started, TIMEOUT_S)

    await repeat(_WARM_UP, AT_ONCE, lambda number: step(-1 - number))
    before = running.processor_ms()
    count, rate = await repeat_for(duration_s, AT_ONCE, step)
    spent = {kind: (now_ms - before[kind]) / count * 1000 for kind, now_ms in running.processor_ms().items()}
    spent["all"] = sum(spent.values())
    return {f"{prefix}cycles_per_s_16": rate} | {f"{prefix}cycle_cpu_{kind}_us": spent[kind] for kind in spent}


async def measure_steps(peer: Peer, running: Running, stamps: Stamps, count: int) -> dict[str, float]:
    """Suspend calls with 1 kB of arguments and then decide them; return both rates, and the memory of a call."""
    suspended: list[SuspendedCall] = []
    calls: list[float] = []

    async def suspend(number: int) -> None:
        suspended.append(await peer.suspend(f"kilo{number}", _SIZE))

    async def decide(number: int) -> None:
        began_ms = monotonic_ms()
        await peer.decide(suspended[number])
        calls.append(monotonic_ms() - began_ms)

    before = running.memory_bytes()
    suspensions = await repeat(count, AT_ONCE, suspend)
    held = (running.memory_bytes() - before) / count
    started = [stamps.expect(one.name) for one in suspended]
    decisions = await repeat(count, AT_ONCE, decide)
    await asyncio.wait_for(asyncio.gather(*started), TIMEOUT_S)
    rates = {"suspend_per_s": suspensions, "decisions_per_s": decisions, "bytes_per_suspended_run": held}
    return rates | percentiles("decide_call_16", calls)
