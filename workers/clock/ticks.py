"""The clock: ticks over due suspensions, which apply fallbacks at deadlines and requeue lost runs.

Safety does not depend on it: operations check deadlines themselves. Any number of clocks may run.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
import uvloop

from sayso.errors import InvalidInput, NotFound, SaysoError, Unavailable
from sayso.records.freezes import Freeze
from service.channels.table import open_channels
from service.jobs import DrainQueue
from service.logs import Trouble, configure_logs
from service.operations.drills.planting import plant_scheduled
from service.operations.drills.templates import drills_of
from service.operations.rulebook.learning import propose_learned
from service.settings import Settings
from service.store.connection.faults import await_store
from service.store.connection.formats import OtherFormat, check_format
from service.wiring import Wiring, assemble, settle_memory
from workers.announcing import keep_announcing
from workers.clock.handed import take_back_handed
from workers.clock.jumps import JumpDetector
from workers.clock.precomputing import Precomputing
from workers.clock.rush import Rush
from workers.counting import keep_counting
from workers.delivery import keep_delivering
from workers.notify.absences import EVERY_S as EVERY_MOVE_S
from workers.notify.absences import AbsenceWatch
from workers.notify.addresses import ContactBook
from workers.notify.listening import keep_listening
from workers.notify.notifier import keep_notifying
from workers.repeating import repeat, wait
from workers.retention import EVERY_S
from workers.withdrawals import keep_withdrawing

TICK_S = 0.1
_JOBS_EVERY_S = 1.0
_TAKE_BACK_S = 1.0
_DRILLS_EVERY_S = 60
_LEARN_EVERY_S = 10
_AT_ONCE = 32
_BATCH_SIZE = 100
_UNREADABLE_AGAIN_MS = 60_000

log = structlog.get_logger()


async def process_due(wiring: Wiring, now_ms: int | None = None) -> int:
    """Tick every suspension that is due now; return their number."""
    due = await wiring.schedule.due(await wiring.schedule.now_ms() if now_ms is None else now_ms)
    queued_since_ms = await wiring.schedule.queued_since_ms() if due else None
    due_batches = (due[start : start + _BATCH_SIZE] for start in range(0, len(due), _BATCH_SIZE))
    left = await asyncio.gather(*(wiring.desk.tick_batch(ids, queued_since_ms) for ids in due_batches))
    await _at_once([one for ids in left for one in ids], partial(_look, wiring, queued_since_ms))
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


async def run_clock(settings: Settings, stopping: asyncio.Event, queue: DrainQueue) -> None:
    """Tick until stopped, through any outage; raises `OtherFormat` for a store that this version cannot read."""
    async with assemble(settings) as wiring:
        drills_of(settings.drills)  # a faulty file is found now
        channels = open_channels(settings).attach(wiring)
        settle_memory()
        await _await_format(settings, stopping)
        jumps, rush, trouble = JumpDetector(wiring), Rush(wiring.schedule), Trouble("tick_failed")
        precomputing = Precomputing(wiring, rush)
        beside = [  # much to wake or a queue that does not answer delays no deadline
            asyncio.create_task(repeat(partial(wake_unfrozen, wiring), TICK_S, stopping, "waking_failed")),
            asyncio.create_task(
                repeat(partial(take_back_handed, wiring), _TAKE_BACK_S, stopping, "handed_runs_not_taken_back")
            ),
            asyncio.create_task(keep_announcing(wiring, stopping)),
            asyncio.create_task(keep_counting(wiring, rush.wait_over, stopping)),
            asyncio.create_task(repeat(partial(plant_scheduled, wiring), _DRILLS_EVERY_S, stopping, "drill_failed")),
            asyncio.create_task(repeat(partial(propose_learned, wiring), _LEARN_EVERY_S, stopping, "learning_failed")),
            asyncio.create_task(keep_delivering(wiring, stopping)),
            asyncio.create_task(keep_withdrawing(wiring, stopping)),
            asyncio.create_task(keep_notifying(wiring, channels, ContactBook(wiring), stopping)),
            asyncio.create_task(
                repeat(AbsenceWatch(wiring).move_cards, EVERY_MOVE_S, stopping, "absences_not_followed")
            ),
            asyncio.create_task(keep_listening(wiring, channels, stopping)),
            asyncio.create_task(
                repeat(partial(_queue_jobs, wiring, queue), _JOBS_EVERY_S, stopping, "queueing_failed")
            ),
        ]
        while not stopping.is_set():
            try:
                now_ms = await jumps.read_now_ms()
                await precomputing.fulfil(now_ms)
                ticked = await process_due(wiring, now_ms) + await precomputing.look_ahead(now_ms)
                wait_s = 0.0 if ticked else min(TICK_S, precomputing.next_in_s(now_ms))
                trouble.over()
            except Exception as error:  # noqa: BLE001  the clock survives and reports any error
                trouble.note(error)
                wait_s = TICK_S
            if wait_s:
                await wait(stopping, wait_s)
        await asyncio.gather(*beside)
        await channels.aclose()


async def _await_format(settings: Settings, stopping: asyncio.Event) -> None:
    trouble = Trouble("clock_waits_for_store")
    while not stopping.is_set():
        try:
            await check_format(settings.store_url)
        except Unavailable as error:
            trouble.note(error)
            await wait(stopping, TICK_S)
        else:
            trouble.over()
            return


async def _queue_jobs(wiring: Wiring, queue: DrainQueue) -> None:
    await asyncio.to_thread(queue.ensure)
    if await wiring.retention.claim(EVERY_S):
        await asyncio.to_thread(queue.put_retention)


async def _at_once(suspension_ids: Sequence[str], step: Callable[[str], Awaitable[None]]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(suspension_id: str) -> None:
        async with slots:
            await step(suspension_id)

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


async def _run(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    log.info("clock_started")
    queue = DrainQueue(settings.store_url, settings.drain_window_s)
    await run_clock(settings, stopping, queue)
    queue.close()


def main(settings: Settings) -> int:
    """Tick until stopped; return 1 for unusable rules, or a store with a later format."""
    configure_logs(settings.log_level)
    try:
        uvloop.run(await_store(settings.store_url))
        uvloop.run(_run(settings))
    except (InvalidInput, OtherFormat, Unavailable) as error:
        log.error("clock_not_started", error=error.message)
        return 1
    return 0
