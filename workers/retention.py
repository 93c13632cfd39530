"""Retention: a job that erases and deletes what is old in batches, and corrects the buckets of open items, hourly."""

import asyncio

import structlog

from sayso.core.clock import DAY_MS, monotonic_ms
from sayso.core.records.decisions import Actor, ActorKind
from service.assembly import assemble
from service.core.store.runs.erasures import Why
from service.core.store.suspensions.buckets import Buckets
from service.core.wiring import Wiring
from service.features.registry import FEATURES
from workers import held_settings

EVERY_S = 3_600
_BATCH = 200
_LONGEST_MS = 60_000
_BY = Actor(id="worker", kind=ActorKind.WORKER, channel="retention")

log = structlog.get_logger()


def retain() -> None:
    """Erase and delete what is old for up to three minutes, then repair the buckets; the job that RQ runs."""

    async def work() -> None:
        async with assemble(held_settings()) as wiring:
            await erase_old(wiring, await wiring.schedule.now_ms())
            await forget_old(wiring, await wiring.schedule.now_ms())
            await keep_features(wiring, await wiring.schedule.now_ms())
            await repair_buckets(wiring)

    asyncio.run(work())


async def erase_old(wiring: Wiring, now_ms: int) -> int:
    """Erase the contents of calls that are too old at `now_ms`; return the number of runs."""
    days, retention = wiring.settings.keep_calls_days, wiring.retention
    if days is None:
        return 0
    why = Why(_BY, f"SAYSO_KEEP_CALLS_DAYS is {days}", now_ms)
    erased, began_ms = 0, monotonic_ms()
    while some := await retention.erasures.erase_old(now_ms - days * DAY_MS, _BATCH, why):
        erased += some
        if monotonic_ms() - began_ms >= _LONGEST_MS:
            await retention.give_back()
            break
    if erased:
        log.info("old_calls_erased", runs=erased)
    return erased


async def forget_old(wiring: Wiring, now_ms: int) -> tuple[int, int]:
    """Delete what is too old at `now_ms`; return the numbers of runs and trails."""
    settings, retention = wiring.settings, wiring.retention
    runs = trails = 0
    began_ms = monotonic_ms()
    while monotonic_ms() - began_ms < _LONGEST_MS:
        some = 0
        if settings.archive is None:
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


async def keep_features(wiring: Wiring, now_ms: int) -> None:
    """Let features move or delete what is too old at `now_ms`."""
    began_ms = monotonic_ms()
    for keep in [feature.retention for feature in FEATURES if feature.retention is not None]:
        while await keep(wiring, now_ms):
            if monotonic_ms() - began_ms >= _LONGEST_MS:
                await wiring.retention.give_back()
                return


async def repair_buckets(wiring: Wiring) -> None:
    """Put the open items into their buckets that a process of an earlier version left out."""
    if wrong := await wiring.part(Buckets).repair():
        log.warning("open_items_corrected", count=wrong)
