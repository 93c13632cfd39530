"""Calls that arrive by the clock, whether or not earlier ones are answered.

Every call is decided one second after its arrival. A time runs from the scheduled moment of a request, so a system that
answers late cannot delay the load that would show it.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from statistics import linear_regression, mean
from typing import NamedTuple

from benchmarks.clients import Stamps
from benchmarks.measures import TIMEOUT_S, percentiles, quantile
from benchmarks.peers import Peer
from sayso.core.clock import monotonic_ms

SHARES = (50, 80, 95)
POINTS = 60
_DECIDED_AFTER_MS = 1000.0
_SOON_MS = 100.0

Figure = float | list[float]
Figures = dict[str, Figure]


class Cycle(NamedTuple):
    """Moments of one decision, ms: scheduled, sent, answered, and the start of its tool; `inf` if never."""

    due_ms: float
    sent_ms: float = inf
    decided_ms: float = inf
    started_ms: float = inf


async def measure_open_loop(peer: Peer, stamps: Stamps, name: str, per_s: float, duration_s: float) -> Figures:
    """Send `per_s` calls a second at even distances; return the figures of their decisions, under `name`."""
    first_ms = monotonic_ms() + _SOON_MS
    tasks: list[asyncio.Task[Cycle]] = []
    for number in range(max(2, round(per_s * duration_s))):
        due_ms = first_ms + number * 1000 / per_s
        await sleep_until(due_ms)
        tasks.append(asyncio.create_task(_run_cycle(peer, stamps, f"{name}-{number}-", due_ms + _DECIDED_AFTER_MS)))
    return summarize(name, await asyncio.gather(*tasks), monotonic_ms())


def summarize(name: str, cycles: Sequence[Cycle], end_ms: float) -> Figures:
    """Return times, errors and backlog of an open loop that was watched until `end_ms`.

    What never happened counts as an error, and with the time until the end.
    """
    first_ms, last_ms = cycles[0].due_ms, cycles[-1].due_ms
    at_s = [(last_ms - first_ms) / 1000 * place / POINTS for place in range(1, POINTS + 1)]
    backlog = count_backlog(cycles, [first_ms + 1000 * one_s for one_s in at_s])
    per_s = (len(cycles) - 1) / at_s[-1]
    return {
        **percentiles(f"{name}_decide_call", [min(one.decided_ms, end_ms) - one.due_ms for one in cycles]),
        **percentiles(f"{name}_decision_to_tool", [min(one.started_ms, end_ms) - one.due_ms for one in cycles]),
        f"{name}_errors": sum(one.started_ms == inf for one in cycles),
        f"{name}_per_s": per_s,
        f"{name}_backlog": backlog,
        f"{name}_backlog_mean": mean(backlog),
        f"{name}_backlog_growth_pct": 100 * linear_regression(at_s, backlog).slope / per_s,
        f"{name}_driver_late_p99_ms": quantile([min(one.sent_ms, end_ms) - one.due_ms for one in cycles], 0.99),
    }


def count_backlog(cycles: Sequence[Cycle], moments_ms: Sequence[float]) -> list[float]:
    """Return how many decided calls had not started at each moment."""
    decided = sorted(one.decided_ms for one in cycles)
    started = sorted(max(one.decided_ms, one.started_ms) for one in cycles)  # a tool may start before the answer
    return [float(bisect_right(decided, at_ms) - bisect_right(started, at_ms)) for at_ms in moments_ms]


async def _run_cycle(peer: Peer, stamps: Stamps, name: str, due_ms: float) -> Cycle:
    """Suspend a call, decide it when due, and wait for its tool."""
    cycle = Cycle(due_ms)
    try:
        suspended = await peer.suspend(name)
        started = stamps.expect(name)
        await sleep_until(due_ms)
        cycle = cycle._replace(sent_ms=monotonic_ms())
        await peer.decide(suspended)
        cycle = cycle._replace(decided_ms=monotonic_ms())
        return cycle._replace(started_ms=await asyncio.wait_for(started, TIMEOUT_S))
    except (OSError, EOFError, RuntimeError) as error:
        print(f"{name}: {type(error).__name__} {error}")
        return cycle


async def sleep_until(at_ms: float) -> None:
    """Sleep in steps, because a timer may fire a little early."""
    while (left_ms := at_ms - monotonic_ms()) > 0:  # noqa: ASYNC110  a moment sends no event
        await asyncio.sleep(left_ms / 1000)
