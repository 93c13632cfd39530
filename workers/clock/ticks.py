"""Look at whatever is due: apply fallbacks at deadlines, and bring back what a crash or a lost job left lying.

Nothing depends on this process for safety, only for things to happen in time: every verb re-checks the record's own
moments, so a decision after the deadline is refused even while no clock runs. Any number of clocks do no harm.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from sayso.errors import InvalidInput, NotFound, SaysoError, Unavailable
from sayso.records.freezes import Freeze
from service.jobs import DrainQueue
from service.logs import Trouble, configure_logs
from service.settings import Settings
from service.store.connection.faults import await_store
from service.store.connection.formats import OtherFormat, check_format
from service.wiring import Wiring, assemble, settle_memory
from workers.clock.jumps import Beats
from workers.clock.precomputing import Precomputing
from workers.delivery import keep_delivering
from workers.retention import EVERY_S
from workers.withdrawals import keep_withdrawing

TICK_S = 0.1
_JOBS_EVERY_S = 1.0
_AT_ONCE = 32
_BATCH_SIZE = 100
_UNREADABLE_AGAIN_MS = 60_000

log = structlog.get_logger()


async def process_due(wiring: Wiring, now_ms: int | None = None) -> int:
    """Look once at everything that is due now; return how many suspensions that were."""
    due = await wiring.schedule.due(await wiring.schedule.now_ms() if now_ms is None else now_ms)
    queued_since_ms = await wiring.schedule.queued_since_ms() if due else None
    due_batches = (due[start : start + _BATCH_SIZE] for start in range(0, len(due), _BATCH_SIZE))
    left = await asyncio.gather(*(wiring.desk.tick_batch(ids, queued_since_ms) for ids in due_batches))
    await _at_once([one for ids in left for one in ids], partial(_look, wiring, queued_since_ms))
    return len(due)


async def wake_unfrozen(wiring: Wiring) -> int:
    """Let everything go on that a lifted freeze held; return how many suspensions were looked at for that.

    Begun anew after a crash: whatever was woken already is not moved twice.
    """
    woken = 0
    for freeze in await wiring.freezes.known():
        if freeze.in_force or freeze.settled:
            continue
        ids = await wiring.schedule.everything()
        await _at_once(ids, partial(_wake, wiring, freeze))
        woken += len(ids)
        await wiring.freezes.note_settled(freeze)
        log.info("freeze_lifted", freeze=freeze.id, scope=freeze.scope, by=freeze.unfrozen_by, woken=woken)
    return woken


async def run_clock(settings: Settings, stopping: asyncio.Event, queue: DrainQueue) -> None:
    """Beat until told to stop, through any absence of the store or of the queue.

    Raises `OtherFormat` for a store that this version cannot read.
    """
    async with assemble(settings) as wiring:
        settle_memory()
        await _await_format(settings, stopping)
        beats, precomputing, trouble = Beats(wiring), Precomputing(wiring), Trouble("clock_beat_failed")
        beside = [
            asyncio.create_task(_keep_waking(wiring, stopping)),
            asyncio.create_task(keep_delivering(wiring, stopping)),
            asyncio.create_task(keep_withdrawing(wiring, stopping)),
            asyncio.create_task(_keep_jobs(wiring, queue, stopping)),
        ]
        while not stopping.is_set():
            try:
                now_ms = await beats.beat()
                await precomputing.fulfil(now_ms)
                looked = await process_due(wiring, now_ms) + await precomputing.look_ahead(now_ms)
                pause_s = 0.0 if looked else min(TICK_S, precomputing.next_in_s(now_ms))
                trouble.over()
            except Exception as error:  # noqa: BLE001  the clock outlives whatever is wrong, and says so
                trouble.note(error)
                pause_s = TICK_S
            if pause_s:
                await _pause(stopping, pause_s)
        await asyncio.gather(*beside)


async def _await_format(settings: Settings, stopping: asyncio.Event) -> None:
    """Return once the store is there and of a format that can be read; raises `OtherFormat`."""
    trouble = Trouble("clock_waits_for_store")
    while not stopping.is_set():
        try:
            await check_format(settings.store_url)
        except Unavailable as error:
            trouble.note(error)
            await _pause(stopping)
        else:
            trouble.over()
            return


async def _keep_waking(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Beside the beat, for there may be much to wake, and deadlines go on meanwhile."""
    trouble = Trouble("waking_failed")
    while not stopping.is_set():
        try:
            await wake_unfrozen(wiring)
            trouble.over()
        except Exception as error:  # noqa: BLE001  the clock outlives whatever is wrong, and says so
            trouble.note(error)
        await _pause(stopping)


async def _keep_jobs(wiring: Wiring, queue: DrainQueue, stopping: asyncio.Event) -> None:
    """Keep jobs waiting for idle workers, beside the beat: a queue that does not answer delays no deadline."""
    trouble = Trouble("queueing_failed")
    while not stopping.is_set():
        try:
            await asyncio.to_thread(queue.ensure)
            if await wiring.retention.claim(EVERY_S):
                await asyncio.to_thread(queue.put_retention)
            trouble.over()
        except Exception as error:  # noqa: BLE001  the clock outlives whatever is wrong, and says so
            trouble.note(error)
        await _pause(stopping, _JOBS_EVERY_S)


async def _at_once(suspension_ids: Sequence[str], look: Callable[[str], Awaitable[None]]) -> None:
    """Look at many suspensions, some at the same time."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(suspension_id: str) -> None:
        async with slots:
            await look(suspension_id)

    await asyncio.gather(*map(one, suspension_ids))


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


async def _pause(stopping: asyncio.Event, pause_s: float = TICK_S) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), pause_s)
    except TimeoutError:
        return


async def _run(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    log.info("clock_started")
    queue = DrainQueue(settings.store_url, settings.drain_window_s)
    await run_clock(settings, stopping, queue)
    queue.close()


def main(settings: Settings) -> int:
    """Beat until told to stop; return 1 for rules that cannot be used, or a store of a later version."""
    configure_logs(settings.log_level)
    try:
        asyncio.run(await_store(settings.store_url))
        asyncio.run(_run(settings))
    except (InvalidInput, OtherFormat, Unavailable) as error:
        log.error("clock_not_started", error=error.message)
        return 1
    return 0
