"""Ticks over due suspensions, which apply fallbacks at deadlines and requeue lost runs.

Safety does not depend on them: operations check deadlines themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from sayso.core.records.freezes import Freeze
from sayso.errors import NotFound, SaysoError, Unavailable
from service.core.wiring import Wiring

TICK_S = 0.1
_AT_ONCE = 32
_BATCH_SIZE = 100
_UNREADABLE_AGAIN_MS = 60_000

log = structlog.get_logger()


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
