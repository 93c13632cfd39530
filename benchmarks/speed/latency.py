"""The time of decisions, one after the other."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.clients import Stamps
from benchmarks.measures import TIMEOUT_S, percentiles
from benchmarks.peers import Peer, SuspendedCall
from sayso.core.clock import monotonic_ms

SPARSE_S = 2.0


class Took(NamedTuple):
    """The time of one decision's request, and from its request to the start of the tool, ms."""

    decide_ms: float
    tool_ms: float


def describe(took: Sequence[Took], prefix: str = "") -> dict[str, float]:
    """Return the figures of some decisions."""
    calls = percentiles(f"{prefix}decide_call", [one.decide_ms for one in took])
    return calls | percentiles(f"{prefix}decision_to_tool", [one.tool_ms for one in took])


async def measure_hot(peer: Peer, stamps: Stamps, prefix: str, count: int) -> list[Took]:
    """Return the times of decisions about calls that were suspended just before."""
    return [await _decide_soon(peer, stamps, await peer.suspend(f"{prefix}{number}")) for number in range(count)]


async def measure_old(peer: Peer, stamps: Stamps, suspended: list[SuspendedCall], count: int) -> list[Took]:
    """Return the times of decisions about calls chosen at random, and remove these from the list."""
    random.shuffle(suspended)
    return [await _decide_soon(peer, stamps, suspended.pop()) for _ in range(count)]


async def measure_sparse(peers: Mapping[str, Peer], stamps: Stamps, count: int) -> dict[str, list[Took]]:
    """Return the times of decisions two seconds apart, for all peers in turn, so that each is quiet in between."""
    suspended = {
        name: [await peer.suspend(f"{name}{number}") for number in range(count)] for name, peer in peers.items()
    }
    took: dict[str, list[Took]] = {name: [] for name in peers}
    for number in range(count):
        for name, peer in peers.items():
            await asyncio.sleep(SPARSE_S / len(peers))
            took[name].append(await _decide(peer, stamps, suspended[name][number]))
    return took


async def _decide_soon(peer: Peer, stamps: Stamps, suspended: SuspendedCall) -> Took:
    await asyncio.sleep(random.uniform(0.002, 0.012))  # noqa: S311  a random gap, not a secret
    return await _decide(peer, stamps, suspended)


async def _decide(peer: Peer, stamps: Stamps, suspended: SuspendedCall) -> Took:
    started = stamps.expect(suspended.name)
    began_ms = monotonic_ms()
    await peer.decide(suspended)
    decided_ms = monotonic_ms()
    return Took(decided_ms - began_ms, await asyncio.wait_for(started, TIMEOUT_S) - began_ms)
