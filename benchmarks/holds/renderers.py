"""How long the loop is held while threads build the card of a large call and its form for each channel."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from benchmarks.holds.corpus import RULES, list_pages
from benchmarks.holds.probes import LoopProbe
from sayso.core.clock import monotonic_ms
from sayso.core.policy.files.reading import parse_rulebook
from service.channels.cards import build_card
from service.channels.kinds import KINDS
from service.channels.previews import SampleCall, build_sample, open_samples
from service.core.wiring import settle_memory

_RULE = "plans"
_URL = "https://sayso.example"
_TRIES = 3


async def measure_renderers(limit_ms: float) -> AsyncIterator[tuple[str, float, float]]:
    """Yield the name of each card and each of its forms, the hold, and the time it took; the best of several tries."""
    settle_memory()
    policy = parse_rulebook(RULES.encode(), file="policy.yaml")
    channels, probe = open_samples(KINDS), LoopProbe()
    probing = asyncio.create_task(probe.run())
    for name, tool, args in list_pages():
        record, definition = build_sample(policy, _RULE, SampleCall(tool=tool, args=args), 0)
        build = partial(build_card, record, record.items[0], definition, _URL)
        yield f"{name}, card", *await _try(probe, build, limit_ms)
        for channel in channels:
            yield f"{name}, {channel.kind}", *await _try(probe, _chain(channel.render, build), limit_ms)
    probing.cancel()


def _chain(render: Callable[[Any], object], build: Callable[[], Any]) -> Callable[[], object]:
    return lambda: render(build())


async def _try(probe: LoopProbe, act: Callable[[], object], limit_ms: float) -> tuple[float, float]:
    best = (float("inf"), 0.0)
    for _ in range(_TRIES):
        await asyncio.sleep(0.005)
        probe.take()
        began_ms = monotonic_ms()
        await asyncio.to_thread(act)
        took_ms = monotonic_ms() - began_ms
        await asyncio.sleep(0.005)
        best = min(best, (probe.take(), took_ms))
        if best[0] <= limit_ms:
            break
    return best
