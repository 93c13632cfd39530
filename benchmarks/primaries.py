"""Measure tenants of clusters with one primary and with three: `make bench ARGS="--primaries"`.

Each of three tenants has its slot, a service, a worker and a clock. With three primaries each has one for itself.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import uvloop

from benchmarks.clients import Stamps
from benchmarks.peers.processes import Running
from benchmarks.peers.sayso import Place, connect_sayso, running_sayso
from benchmarks.speed.closed_loop import AT_ONCE, measure_cycles
from launch.server import running_server
from tests.clusters import running_cluster

NUMBERS = (1, 3)
TENANTS = ("acme", "umbrella", "hooli")  # in a cluster of three, each lies on another primary
_PORT, _CONNECTIONS, _CYCLES_S = 17_720, 16, 20


def main(scale: float) -> int:
    """Measure and print."""
    return uvloop.run(_measure(scale))


async def _measure(scale: float) -> int:
    stamps = Stamps()
    await stamps.listen()
    print(f"Whole cycles a second, {AT_ONCE} clients of each tenant\n")
    print(f"| primaries | {' | '.join(TENANTS)} | in all |\n| --- |{' --- |' * (len(TENANTS) + 1)}")
    for primaries in NUMBERS:
        with ExitStack() as parts:
            runnings = _start(parts, stamps, primaries)
            async with AsyncExitStack() as opened:
                measures = []
                for tenant, running in runnings.items():
                    sayso, pools = await connect_sayso(running, _CONNECTIONS)
                    for pool in pools:
                        opened.push_async_callback(pool.close)
                    measures.append(measure_cycles(sayso, running, stamps, max(1.0, _CYCLES_S * scale), tenant))
                all_figures = await asyncio.gather(*measures)
        rates = [figures[f"{tenant}cycles_per_s_16"] for tenant, figures in zip(TENANTS, all_figures, strict=True)]
        print(f"| {primaries} | {' | '.join(f'{rate:,.0f}' for rate in rates)} | {sum(rates):,.0f} |", flush=True)
    return 0


def _start(parts: ExitStack, stamps: Stamps, primaries: int) -> dict[str, Running]:
    """Run a cluster, a store for the queue, and the programs of each tenant."""
    folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
    for name in ("nodes", "queue", *TENANTS):
        (folder / name).mkdir()
    cluster = parts.enter_context(running_cluster(folder / "nodes", primaries=primaries, replicas=0))
    queue = parts.enter_context(running_server(folder / "queue"))
    runnings = {}
    for number, tenant in enumerate(TENANTS):
        place = Place(cluster.url, f"redis://127.0.0.1:{cluster.find_primary(tenant)}", queue, tenant)
        runnings[tenant] = parts.enter_context(
            running_sayso(folder / tenant, _PORT + number, stamps.path, "always", place=place)
        )
    return runnings
