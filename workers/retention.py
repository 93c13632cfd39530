"""Retention: a job that deletes old runs and trails in batches and corrects the buckets of open items, once an hour."""

import asyncio

import structlog

from sayso.clock import DAY_MS, monotonic_ms
from service.settings import Settings, load
from service.wiring import Wiring, assemble

EVERY_S = 3_600
_BATCH = 200
_LONGEST_MS = 60_000

log = structlog.get_logger()


def retain() -> None:
    """Delete old runs and trails for up to a minute, then repair the buckets; the job that RQ runs."""
    asyncio.run(_retain(load()))


async def _retain(settings: Settings) -> None:
    async with assemble(settings) as wiring:
        await forget_old(wiring, await wiring.schedule.now_ms())
        await repair_buckets(wiring)


async def forget_old(wiring: Wiring, now_ms: int) -> tuple[int, int]:
    """Delete what is too old at `now_ms`; return the numbers of runs and trails."""
    settings, retention = wiring.settings, wiring.retention
    runs = trails = 0
    began_ms = monotonic_ms()
    while monotonic_ms() - began_ms < _LONGEST_MS:
        some = await retention.forget_runs(now_ms - settings.keep_runs_days * DAY_MS, _BATCH, now_ms)
        old = await retention.forget_trails(now_ms - settings.keep_trail_days * DAY_MS, _BATCH)
        runs, trails = runs + some, trails + old
        if not some and not old:
            break
    else:
        await retention.give_back()
    if runs or trails:
        log.info("old_runs_forgotten", runs=runs, trails=trails)
    return runs, trails


async def repair_buckets(wiring: Wiring) -> None:
    """Put the open items into their buckets that a process of an earlier version left out."""
    if wrong := await wiring.buckets.repair():
        log.warning("open_items_corrected", count=wrong)
