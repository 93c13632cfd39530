"""One round: each system alone on its own server, one after the other, and all at once for sparse decisions."""

import gc
import tempfile
import timeit
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients import Clients, Stamps
from benchmarks.measures import percentiles, quantile, repeat
from benchmarks.peers import SuspendedCall, arguments
from benchmarks.peers.floor_b import enqueue_to_start_ms
from benchmarks.peers.floors import running_rq
from benchmarks.peers.sayso import connect_sayso
from benchmarks.speed.closed_loop import AT_ONCE, measure_cycles, measure_steps
from benchmarks.speed.deadlines import measure_deadlines
from benchmarks.speed.imports import measure_imports
from benchmarks.speed.latency import describe, measure_hot, measure_old, measure_sparse
from benchmarks.speed.open_loop import SHARES, Figures, measure_open_loop
from benchmarks.speed.systems import SYSTEMS, System, open_sayso
from benchmarks.speed.waits import CLIENTS, measure_waits
from sayso.core.clock import monotonic_ms
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import load_rulebook
from service.core.settings import CHECKOUT

PARTS = ("hot", "closed", "open", "sparse", "old", "deadlines", "others")
SIZES = (1_000, 10_000, 100_000)
_WARM_UP = 50
_INBOX_READS = 40


@dataclass(frozen=True)
class Extent:
    """How much to measure: some parts, of some systems, at a scale of at most 1."""

    scale: float
    fsync: str
    parts: Collection[str]
    systems: Collection[str]

    @property
    def hot(self) -> int:
        """Return how many decisions follow each other."""
        return max(50, round(2000 * self.scale))

    @property
    def sparse(self) -> int:
        """Return how many decisions are two seconds apart."""
        return max(5, round(300 * self.scale))

    @property
    def closed_s(self) -> float:
        """Return how long a closed loop takes."""
        return max(1.0, 30 * self.scale)

    @property
    def open_s(self) -> float:
        """Return how long an open loop takes."""
        return max(2.0, 60 * self.scale)

    def limit(self, most: int) -> int:
        """Return how many of `most` to suspend: all of them from a scale of 0.15 on."""
        return round(most * min(1.0, self.scale / 0.15))


async def measure_round(stamps: Stamps, extent: Extent) -> dict[str, Figures]:
    """Return the figures of each system."""
    found: dict[str, Figures] = {}
    for name in extent.systems:
        gc.collect()
        if name == "floor_b":
            found[name] = await _measure_floor_b(stamps, extent)
            continue
        async with SYSTEMS[name](stamps, extent.fsync) as system:
            found[name] = await _measure(system, stamps, extent)
        if name == "sayso" and "others" in extent.parts:
            found[name] |= await _measure_two_workers(stamps, extent) | measure_imports() | _measure_policy()
    if "sparse" in extent.parts:
        for name, figures in (await _measure_sparse(stamps, extent)).items():
            found[name] |= figures
    return found


async def _measure(system: System, stamps: Stamps, extent: Extent) -> Figures:
    """Return the figures of one system, in an order in which no part leaves work for the next."""
    figures: Figures = {}
    if "closed" in extent.parts:  # first, because later the server also frees the memory of ended runs
        await measure_hot(system.peer, stamps, "first", _WARM_UP)
        figures |= await measure_steps(system.peer, system.running, stamps, extent.limit(1_000))
    peers = {"": system.peer} | ({"runs_": system.runs} if system.runs else {})
    for prefix, peer in peers.items():
        if "hot" in extent.parts:
            await measure_hot(peer, stamps, f"{prefix}warm", _WARM_UP)
            figures |= describe(await measure_hot(peer, stamps, f"{prefix}hot", extent.hot), prefix)
        if {"closed", "open"} & set(extent.parts):
            figures |= await measure_cycles(peer, system.running, stamps, extent.closed_s, prefix)
    if "open" in extent.parts:
        most = figures["cycles_per_s_16"]
        assert isinstance(most, float)  # noqa: S101  a rate, not a series
        for share in SHARES:
            rate = most * share / 100
            figures |= await measure_open_loop(system.peer, stamps, f"open_{share}", rate, extent.open_s)
        figures["open_loop_s"] = extent.open_s
    if "old" in extent.parts:
        figures |= await _measure_old(system, stamps, extent)
    if system.runs is not None:
        figures |= await _measure_more(system, extent)
    return figures


async def _measure_old(system: System, stamps: Stamps, extent: Extent) -> Figures:
    """Measure decisions about calls chosen at random, of more and more suspended ones."""
    figures: Figures = {}
    suspended: list[SuspendedCall] = []
    for size in SIZES:
        if size > system.most:
            break
        suspended += await system.fill(f"old{size}-", extent.limit(size) - len(suspended))
        took = await measure_old(system.peer, stamps, suspended, min(extent.hot, len(suspended)))
        figures |= {f"{name}_at_{size}": value for name, value in describe(took, "old_").items()}
    return figures


async def _measure_more(system: System, extent: Extent) -> Figures:
    """Measure what only Sayso has: deadlines, the inbox, and clients that wait."""
    figures: Figures = {}
    if "deadlines" in extent.parts:
        figures |= await measure_deadlines(system.peer, system.running, extent.limit(10_000))
    if "others" in extent.parts:
        figures |= await _measure_inbox(system)
        figures |= await measure_waits(system.peer, system.running, max(50, round(CLIENTS * extent.scale)))
        figures |= await _measure_holding(system, extent.limit(4_000))
    return figures


async def _measure_inbox(system: System) -> Figures:
    """Return the time of the API's inbox over all open items."""
    _, connections = await connect_sayso(system.running, 1)
    reviewer: Clients = connections[1]
    took: list[float] = []
    for _ in range(_INBOX_READS):
        began_ms = monotonic_ms()
        await reviewer.call("GET", "/api/v1/suspensions?limit=50")
        took.append(monotonic_ms() - began_ms)
    for connection in connections:
        await connection.close()
    return {"inbox_p95_ms": quantile(took, 0.95)}


async def _measure_holding(system: System, count: int) -> Figures:
    """Return the growth of service and workers per suspended call."""

    async def step(number: int) -> None:
        await system.peer.suspend(f"held{number}-")

    await repeat(count // 4, AT_ONCE, step)
    before = {kind: system.running.resident_bytes(kind) for kind in ("service", "worker")}
    await repeat(count, AT_ONCE, step)
    return {
        f"{kind}_bytes_per_suspended_run": (system.running.resident_bytes(kind) - held) / count
        for kind, held in before.items()
    }


async def _measure_two_workers(stamps: Stamps, extent: Extent) -> Figures:
    async with open_sayso(stamps, extent.fsync, workers=2) as system:
        found = await measure_cycles(system.peer, system.running, stamps, extent.closed_s)
    return {"cycles_per_s_16_two_workers": found["cycles_per_s_16"]}


async def _measure_floor_b(stamps: Stamps, extent: Extent) -> Figures:
    """Measure RQ alone, from enqueue to start."""
    if "hot" not in extent.parts:
        return {}
    with tempfile.TemporaryDirectory() as home, running_rq(Path(home), stamps.path, extent.fsync) as running:
        await enqueue_to_start_ms(running.url, stamps, 5)
        took = await enqueue_to_start_ms(running.url, stamps, extent.hot)
    return {**percentiles("decision_to_tool", took)}


async def _measure_sparse(stamps: Stamps, extent: Extent) -> dict[str, Figures]:
    async with AsyncExitStack() as opened:
        systems = {
            name: await opened.enter_async_context(start(stamps, extent.fsync))
            for name, start in SYSTEMS.items()
            if name in extent.systems
        }
        peers = {name: system.peer for name, system in systems.items()}
        for name, peer in peers.items():
            await measure_hot(peer, stamps, f"{name}-warm", _WARM_UP)
        took = await measure_sparse(peers, stamps, extent.sparse)
    return {name: {**describe(one, "sparse_")} for name, one in took.items()}


def _measure_policy() -> Figures:
    """Return the time of judging one call, µs."""
    policy = load_rulebook(CHECKOUT / "benchmarks" / "policy.yaml")
    event = PolicyEvent(run_id="r", agent="bench", tool_name="refund", tool_args=arguments("x", 300))
    count = 2000
    return {"policy_us": timeit.timeit(lambda: policy.judge(event), number=count) / count * 1e6}
