"""Measure a company's load on two services and two workers, and how programs share it: `make bench ARGS="--load 15"`.

Calls arrive by the clock, 25 a second, and each is approved a second later. The shares of services and workers are
whole cycles (asked, decided, tool started) of 16 clients; on a machine with few cores they also compete for those.
"""

import gc
from collections.abc import Mapping

import uvloop

from benchmarks.clients import Stamps
from benchmarks.peers.processes import Running
from benchmarks.speed.closed_loop import measure_cycles
from benchmarks.speed.open_loop import Figures, measure_open_loop
from benchmarks.speed.systems import open_sayso

PER_S = 25
NUMBERS = (1, 2, 4)
MOST_MS, MOST_GROWTH = 250.0, 1.25
"""Bounds of the slowest in a hundred, ms, and of the growth of the programs' memory after the first minute."""

_WARM_S, _CYCLES_S = 60, 10
_KINDS = ("service", "worker", "clock")
_CYCLES = "cycles_per_s_16"


def main(minutes: float, scale: float) -> int:
    """Measure and print; return 1 if a bound is not met."""
    return uvloop.run(_measure(minutes * 60, scale))


async def _measure(seconds: float, scale: float) -> int:
    stamps = Stamps()
    await stamps.listen()
    over = await _measure_load(stamps, seconds)
    print("\n| services | workers | cycles/s | processor of a cycle, all programs (ms) |\n| --- | --- | --- | --- |")
    for services in NUMBERS:
        for workers in NUMBERS:
            gc.collect()
            async with open_sayso(stamps, "always", workers, services) as system:
                found = await measure_cycles(system.peer, system.running, stamps, max(1.0, _CYCLES_S * scale))
            spent = (found["cycle_cpu_all_us"] - found["cycle_cpu_driver_us"]) / 1000
            print(f"| {services} | {workers} | {found[_CYCLES]:,.0f} | {spent:.1f} |", flush=True)
    return int(over)


async def _measure_load(stamps: Stamps, seconds: float) -> bool:
    """Print the figures of the load; return whether one exceeds its bound."""
    async with open_sayso(stamps, "always", workers=2, services=2) as system:
        await measure_open_loop(system.peer, stamps, "warm", PER_S, min(_WARM_S, seconds))
        before = _read_memory(system.running)
        found = await measure_open_loop(system.peer, stamps, "load", PER_S, seconds)
        after = _read_memory(system.running)
    print(f"{PER_S} calls a second for {seconds / 60:g} minutes, {found['load_errors']} errors\n")
    print("| Measure | p50 | p99 | Bound |\n| --- | --- | --- | --- |")
    over = found["load_errors"] != 0
    for name, measure in (("decide_call", "decide call (ms)"), ("decision_to_tool", "decision to tool (ms)")):
        p50, p99 = (_read(found, f"load_{name}_p{share}_ms") for share in (50, 99))
        print(f"| {measure} | {p50:.1f} | {p99:.1f} | {MOST_MS:g} |")
        over = over or p99 > MOST_MS
    for kind, size in after.items():
        sizes = f"{before[kind] / 1e6:.0f} | {size / 1e6:.0f}"
        print(f"| memory of {kind}s after a minute, and at the end (MB) | {sizes} | |")
        over = over or size > before[kind] * MOST_GROWTH
    return over


def _read_memory(running: Running) -> Mapping[str, int]:
    return {kind: running.resident_bytes(kind) for kind in _KINDS}


def _read(found: Figures, name: str) -> float:
    figure = found[name]
    assert isinstance(figure, float)  # noqa: S101  a time, not a series
    return figure
