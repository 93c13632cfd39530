"""One round of measurements per peer, each on its own server, one after the other."""

import asyncio
import tempfile
import timeit
from pathlib import Path

from benchmarks.clients import Clients, Stamps
from benchmarks.deadlines import measure_deadlines
from benchmarks.fills import fill
from benchmarks.floor_b import enqueue_to_start_ms
from benchmarks.imports import measure_imports
from benchmarks.measures import (
    TIMEOUT_S,
    measure_cycles,
    measure_decisions,
    measure_holding,
    measure_latency,
    measure_suspensions,
    quantile,
)
from benchmarks.peers import (
    Peer,
    Running,
    arguments,
    connect_floor,
    connect_sayso,
    running_floor,
    running_rq,
    running_sayso,
)
from benchmarks.waits import measure_waits
from sayso.clock import monotonic_ms
from sayso.policy.engine import PolicyEvent
from sayso.policy.files import load_rulebook
from service.settings import CHECKOUT

PORT = 17_711
AT_ONCE = 16
Figures = dict[str, float]


async def measure_floor_a(stamps: Stamps, fsync: str, scale: float) -> Figures:
    """Return floor A's figures."""
    with tempfile.TemporaryDirectory() as home, running_floor(Path(home), PORT, stamps.path, fsync) as running:
        peer, connections = await connect_floor(running, AT_ONCE)
        figures = await _measure_common(peer, running, stamps, scale)
        await _close(connections)
    return figures


async def measure_floor_b(stamps: Stamps, fsync: str, scale: float) -> Figures:
    """Return floor B's figures: RQ alone, from enqueue to start."""
    with tempfile.TemporaryDirectory() as home, running_rq(Path(home), stamps.path, fsync) as running:
        took = await enqueue_to_start_ms(running.url, stamps, max(20, int(100 * scale)))
    return {"decision_to_tool_p50_ms": quantile(took, 0.5), "decision_to_tool_p99_ms": quantile(took, 0.99)}


async def measure_sayso(stamps: Stamps, fsync: str, scale: float) -> Figures:
    """Return Sayso's figures, including growth, deadlines, inbox and policy, which the floors do not have."""
    with tempfile.TemporaryDirectory() as home, running_sayso(Path(home), PORT, stamps.path, fsync) as running:
        peer, connections = await connect_sayso(running, AT_ONCE)
        figures = await _measure_common(peer, running, stamps, scale)
        figures |= await _measure_growth(peer, running, stamps, scale)
        figures |= await _measure_inbox(running)
        figures |= await measure_deadlines(peer, running, int(10_000 * scale))
        figures |= await measure_waits(peer, running, scale)
        figures |= await measure_holding(peer, running.resident_bytes, "held", int(20_000 * scale), AT_ONCE)
        await _close(connections)
    one, two = [await _measure_workers(stamps, fsync, scale, count) for count in (1, 2)]
    figures |= {"cycles_two_workers_over_one": two / one}
    return figures | measure_imports() | {"policy_us": _measure_policy()}


async def _measure_workers(stamps: Stamps, fsync: str, scale: float, count: int) -> float:
    """Return the cycles per second of `count` workers."""
    with tempfile.TemporaryDirectory() as home, running_sayso(Path(home), PORT, stamps.path, fsync, count) as running:
        peer, connections = await connect_sayso(running, AT_ONCE)
        await measure_cycles(peer, stamps, "all-warm", 100, AT_ONCE)
        cycles = await measure_cycles(peer, stamps, "all", int(2000 * scale), AT_ONCE)
        await _close(connections)
    return cycles


async def _measure_common(peer: Peer, running: Running, stamps: Stamps, scale: float) -> Figures:
    await measure_latency(peer, stamps, "warm", 50)
    calls, starts = await measure_latency(peer, stamps, "one", int(300 * scale))
    before = running.memory_bytes()
    suspensions, suspended = await measure_suspensions(peer, "kilo", int(2000 * scale), AT_ONCE, size=1000)
    held = (running.memory_bytes() - before) / len(suspended)
    started = [stamps.expect(one.name) for one in suspended]
    decisions, at_once = await measure_decisions(peer, suspended, AT_ONCE)
    await asyncio.wait_for(asyncio.gather(*started), TIMEOUT_S)
    cycles = await measure_cycles(peer, stamps, "cycle", int(2000 * scale), AT_ONCE)
    return {
        "suspend_per_s": suspensions,
        "decide_call_p50_ms": quantile(calls, 0.5),
        "decide_call_p99_ms": quantile(calls, 0.99),
        "decide_call_16_p50_ms": quantile(at_once, 0.5),
        "decide_call_16_p99_ms": quantile(at_once, 0.99),
        "decision_to_tool_p50_ms": quantile(starts, 0.5),
        "decision_to_tool_p99_ms": quantile(starts, 0.99),
        "cycles_per_s_16": cycles,
        "bytes_per_suspended_run": held,
        "decisions_per_s": decisions,
    }


async def _measure_growth(peer: Peer, running: Running, stamps: Stamps, scale: float) -> Figures:
    """Measure the same latencies at 1,000, 10,000 and 100,000 suspended runs."""
    figures: Figures = {}
    suspended = 0
    for size in (1_000, 10_000, 100_000):
        wanted = int(size * scale)
        await fill(running.url, f"fill{size}-", wanted - suspended)
        suspended = wanted
        calls, starts = await measure_latency(peer, stamps, f"at{size}-", max(50, int(200 * scale)))
        figures |= {f"decide_call_p50_ms_at_{size}": quantile(calls, 0.5)}
        figures |= {f"decision_to_tool_p50_ms_at_{size}": quantile(starts, 0.5)}
    figures["suspended_100k_over_1k"] = (
        figures["decision_to_tool_p50_ms_at_100000"] / figures["decision_to_tool_p50_ms_at_1000"]
    )
    figures["aof_bytes"] = running.disk_bytes()
    figures["processes_bytes"] = running.resident_bytes()
    return figures


async def _measure_inbox(running: Running) -> Figures:
    """Return the time of the API's inbox over all open items."""
    _, connections = await connect_sayso(running, 1)
    reviewer: Clients = connections[1]
    took: list[float] = []
    for _ in range(40):
        began_ms = monotonic_ms()
        await reviewer.call("GET", "/api/v1/suspensions?limit=50")
        took.append(monotonic_ms() - began_ms)
    await _close(connections)
    return {"inbox_100k_p95_ms": quantile(took, 0.95)}


async def _close(connections: list[Clients]) -> None:
    for connection in connections:
        await connection.close()


def _measure_policy() -> float:
    """Return the time of judging one call, µs."""
    policy = load_rulebook(CHECKOUT / "benchmarks" / "policy.yaml")
    event = PolicyEvent(run_id="r", agent="bench", tool_name="refund", tool_args=arguments("x", 300))
    count = 2000
    return timeit.timeit(lambda: policy.judge(event), number=count) / count * 1e6
