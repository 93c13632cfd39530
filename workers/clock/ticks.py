"""Ticks of the clock's process: fallbacks at deadlines, lost runs, and runs of revoked keys.

Safety does not depend on them: operations check deadlines, and requests check keys, themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf

import structlog

from sayso.core.clock import monotonic_ms
from sayso.core.records.freezes import Freeze
from sayso.errors import NotFound, SaysoError, Unavailable, Unreadable
from service.core.operations.runs import withdraw_runs
from service.core.store.people import ApiKey
from service.core.store.suspensions.schedule import Schedule, read_ready
from service.core.wiring import Wiring
from workers.repeating import repeat

log = structlog.get_logger()


async def take_back_handed(wiring: Wiring) -> int:
    """Put the runs that gone workers never got on the ready list; return their number.

    Only one process gets each, and a crash of this one leaves it to the end of its lease.
    """
    suspensions, taken = wiring.desk.suspensions, 0
    for worker in await suspensions.waiting.list_gone():
        for ready in map(read_ready, await suspensions.waiting.take_rest(worker)):
            try:
                handed = await suspensions.read_handed(ready.id, ready.packed)
            except Unreadable as error:
                log.error("suspension_unreadable", suspension=ready.id, error=error.message)
                continue
            if await wiring.desk.take_back(handed.record) is not None:
                log.info("run_taken_back", suspension=ready.id, worker=worker)
                taken += 1
    return taken


_LATE_MS = 30
"""Lateness from which it is a rush."""

MOST_MS = 3_000
"""How long a rush holds others up."""

_APART_MS = 10_000
"""How long after its last lateness a rush is over, and others would wait again."""

_ANNOUNCE_MS = 100


class Rush:
    """The rush of one clock, if there is one."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._calm = asyncio.Event()
        self._calm.set()
        self._began_ms = self._late_at_ms = self._announced_ms = -inf

    async def note(self, late_ms: float) -> None:
        """Note how late the most overdue change is, 0 without one; announce a rush to workers."""
        now_ms = monotonic_ms()
        if late_ms < _LATE_MS:
            self._calm.set()
            return
        if now_ms - self._late_at_ms > _APART_MS:
            self._began_ms = now_ms
        self._late_at_ms = now_ms
        if now_ms - self._began_ms > MOST_MS:
            self._calm.set()
            return
        self._calm.clear()
        if now_ms - self._announced_ms > _ANNOUNCE_MS:
            self._announced_ms = now_ms
            await self._schedule.announce_rush(2 * _ANNOUNCE_MS)

    async def wait_over(self) -> None:
        """Wait until there is no rush, or it has lasted long enough."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._calm.wait(), MOST_MS / 1000)


TICK_S = 0.1
_AT_ONCE = 32
_BATCH_SIZE = 100
_UNREADABLE_AGAIN_MS = 60_000


async def process_due(wiring: Wiring, now_ms: int | None = None) -> int:
    """Tick every suspension that is due now; return their number."""
    due = await wiring.schedule.due(await wiring.schedule.now_ms() if now_ms is None else now_ms)
    queued_since_ms = await wiring.schedule.queued_since_ms() if due else None
    due_batches = (due[start : start + _BATCH_SIZE] for start in range(0, len(due), _BATCH_SIZE))
    remaining = await asyncio.gather(*(wiring.desk.tick_batch(ids, queued_since_ms) for ids in due_batches))
    await _at_once([id_ for ids in remaining for id_ in ids], partial(_look, wiring, queued_since_ms))
    return len(due)


async def wake_unfrozen(wiring: Wiring) -> int:
    """Wake every suspension that an ended freeze held; return the number that was checked. A crash restarts it."""
    woken = 0
    for freeze in await wiring.freezes.known():
        if freeze.in_force or freeze.settled:
            continue
        ids = await wiring.schedule.everything()
        await _at_once(ids, partial(_wake, wiring, freeze))
        woken += len(ids)
        await wiring.freezes.note_settled(freeze)
        log.info("unfrozen", freeze=freeze.id, scope=freeze.scope, by=freeze.unfrozen_by, woken=woken)
    return woken


async def _at_once(suspension_ids: Sequence[str], step: Callable[[str], Awaitable[None]]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def run(suspension_id: str) -> None:
        async with slots:
            await step(suspension_id)

    await asyncio.gather(*map(run, suspension_ids))


async def _look(wiring: Wiring, queued_since_ms: int | None, suspension_id: str) -> None:
    try:
        await wiring.desk.tick(suspension_id, queued_since_ms)
    except NotFound:
        await wiring.schedule.forget(suspension_id)
    except Unavailable:
        raise
    except (SaysoError, ValueError) as error:
        log.error("suspension_unreadable", suspension=suspension_id, error=f"{type(error).__name__}: {error}")
        await wiring.schedule.defer(suspension_id, await wiring.schedule.now_ms() + _UNREADABLE_AGAIN_MS)


async def _wake(wiring: Wiring, freeze: Freeze, suspension_id: str) -> None:
    try:
        await wiring.desk.wake(suspension_id, freeze)
    except Unavailable:
        raise
    except (SaysoError, ValueError) as error:
        log.warning("suspension_not_woken", suspension=suspension_id, error=f"{type(error).__name__}: {error}")


EVERY_S = 1.0
AGAIN_MS = 5_000
"""Longer than any process caches a checked key, so that the second pass is complete."""

log = structlog.get_logger()


class Withdrawals:
    """The two passes over the runs of each revoked key."""

    def __init__(self, wiring: Wiring, again_ms: int = AGAIN_MS) -> None:
        self._wiring = wiring
        self._again_ms = again_ms
        self._first_ms: dict[str, float] = {}

    async def sweep(self) -> None:
        for key in await self._wiring.api_keys.list_all():
            if key.revoked_at_ms is not None and not key.withdrawn:
                await self._withdraw(key)

    async def _withdraw(self, key: ApiKey) -> None:
        began_ms = monotonic_ms()
        first_ms = self._first_ms.get(key.id)
        if first_ms is not None and began_ms - first_ms < self._again_ms:
            return
        if cancelled := await withdraw_runs(self._wiring, key.name):
            log.info("runs_withdrawn", key=key.id, name=key.name, runs=cancelled)
        if first_ms is None:
            self._first_ms[key.id] = began_ms
        else:
            await self._wiring.api_keys.note_withdrawn(key.id)
            del self._first_ms[key.id]


async def keep_withdrawing(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Sweep until stopped."""
    await repeat(Withdrawals(wiring).sweep, EVERY_S, stopping, "withdrawing_failed")
