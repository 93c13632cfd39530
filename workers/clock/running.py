"""The clock's process: it ticks over due suspensions, and runs the features' ticks. Any number may run.

Much to do in one loop, or a server that does not answer, delays no other. A jump of the store's clock of over five
minutes, compared with this machine's uptime, freezes time until an admin confirms the clock or it goes back.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog
import uvloop

from sayso.core.clock import boot_id, now_ms, uptime_ms
from sayso.core.records.freezes import JUMP_MS, TIME, ClockReading, find_drift_ms
from sayso.errors import InvalidInput, Unavailable
from service.assembly import assemble
from service.channels.kinds import Channels, open_channels
from service.core.jobs import RETAIN, DrainQueue
from service.core.logs import Trouble
from service.core.settings import Settings
from service.core.store.channels import CardQueue
from service.core.store.connection.connecting import await_store
from service.core.store.connection.formats import OtherFormat, check_format
from service.core.store.connection.macs import Macs
from service.core.store.deliveries import Deliveries
from service.core.wiring import Wiring, settle_memory
from service.features.control.drills import drills_of
from service.features.registry import FEATURES
from service.features.webhooks.store import AnnouncementQueue
from workers import repeat, wait
from workers.clock.ticks import TICK_S, Precomputing, Rush, Withdrawals, process_due, take_back_handed, wake_unfrozen
from workers.delivery import keep_delivering
from workers.notify.attempts import ContactBook
from workers.notify.built_in import keep_built_in
from workers.notify.interruptions import AbsenceWatch
from workers.notify.notifier import keep_listening, keep_notifying
from workers.outbox import Counting, FanOut
from workers.retention import EVERY_S

_KEPT_EVERY_MS = 1000

log = structlog.get_logger()


class JumpDetector:
    """Readings of the store's clock. The first is compared with the last reading that any clock saved."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._boot = boot_id()
        self._last: ClockReading | None = None
        self._kept_at_ms = 0

    async def read_now_ms(self) -> int:
        uptime = uptime_ms()
        at_ms = await self._wiring.schedule.now_ms()
        await self.note(ClockReading(at_ms=at_ms, uptime_ms=uptime, boot=self._boot, wall_ms=now_ms()))
        return at_ms

    async def note(self, reading: ClockReading) -> None:
        """Freeze or unfreeze time if the store's clock jumped since the last reading; save a reading once a second."""
        freezes = self._wiring.freezes
        last = self._last or await freezes.last_reading()
        drift_ms = find_drift_ms(last, reading) if last is not None else 0
        if last is not None and drift_ms > JUMP_MS:
            known = await freezes.known(fresh=True)
            jumps = [(freeze.at_ms, freeze.jumped_to_ms or 0) for freeze in known if freeze.scope == TIME]
            reported_ms = sum(to_ms - from_ms for from_ms, to_ms in jumps if last.at_ms < to_ms <= reading.at_ms)
            if drift_ms - reported_ms > JUMP_MS:  # no other clock has reported the same jump
                freeze = await freezes.doubt_time(last.at_ms, reading.at_ms)
                log.error("store_clock_jumped", by_ms=drift_ms, freeze=freeze.id, reason=freeze.reason)
        elif drift_ms < -JUMP_MS:
            await self._wiring.part(Deliveries).follow_back(-drift_ms, reading.at_ms)
            await self._wiring.part(AnnouncementQueue).bring_forward(reading.at_ms)
            await self._wiring.part(CardQueue).bring_forward(reading.at_ms)
            unfrozen = await freezes.notice_return(-drift_ms, reading.at_ms)
            log.error("store_clock_went_back", by_ms=-drift_ms, unfrozen=unfrozen.id if unfrozen else None)
        if self._last is None or abs(drift_ms) > JUMP_MS or reading.uptime_ms - self._kept_at_ms >= _KEPT_EVERY_MS:
            await freezes.save_reading(reading, went_back=drift_ms < -JUMP_MS)
            self._kept_at_ms = reading.uptime_ms
        self._last = reading


@dataclass
class Clock:
    """What the loops of one process share."""

    wiring: Wiring
    channels: Channels
    queue: DrainQueue
    rush: Rush
    stopping: asyncio.Event

    async def repeat(self, step: Callable[[Wiring], Awaitable[object]], every_s: float, failure: str) -> None:
        """Repeat the step until stopped; log its errors under `failure`."""
        await repeat(partial(step, self.wiring), every_s, self.stopping, failure)

    async def queue_jobs(self, wiring: Wiring) -> None:
        """Queue the job that drives runs, and each hour the one that deletes old ones."""
        await asyncio.to_thread(self.queue.ensure)
        if await wiring.retention.claim(EVERY_S):
            await asyncio.to_thread(self.queue.put, RETAIN)


LOOPS: tuple[Callable[[Clock], Awaitable[None]], ...] = (
    lambda clock: clock.repeat(wake_unfrozen, TICK_S, "waking_failed"),
    lambda clock: clock.repeat(take_back_handed, 1, "handed_runs_not_taken_back"),
    lambda clock: clock.repeat(clock.queue_jobs, 1, "queueing_failed"),
    lambda clock: repeat(AbsenceWatch(clock.wiring).move_cards, 1, clock.stopping, "absences_not_followed"),
    lambda clock: repeat(FanOut(clock.wiring).announce_due, TICK_S, clock.stopping, "announcing_failed"),
    lambda clock: repeat(
        Counting(clock.wiring, clock.rush.wait_over).count_waiting, 0.5, clock.stopping, "counting_failed"
    ),
    lambda clock: keep_delivering(clock.wiring, clock.stopping),
    lambda clock: repeat(Withdrawals(clock.wiring).sweep, 1, clock.stopping, "withdrawing_failed"),
    lambda clock: keep_notifying(clock.wiring, clock.channels, ContactBook(clock.wiring), clock.stopping),
    lambda clock: keep_listening(clock.wiring, clock.channels, clock.stopping),
    lambda clock: keep_built_in(clock.wiring, clock.channels, clock.stopping),
)


async def run_loops(clock: Clock) -> None:
    """Run all loops, and the ticks of all features, until stopped."""
    ticks = [clock.repeat(*tick) for feature in FEATURES for tick in feature.ticks]
    await asyncio.gather(*(loop(clock) for loop in LOOPS), *ticks)


async def run_clock(settings: Settings, stopping: asyncio.Event, queue: DrainQueue) -> None:
    """Tick until stopped, through any outage; raises `OtherFormat` for a store that this version cannot read."""
    while not stopping.is_set():
        await _run_while_live(settings, stopping, queue)


async def _run_while_live(settings: Settings, stopping: asyncio.Event, queue: DrainQueue) -> None:
    """Tick until stopped, or until the tenant moves to another store; wait first where it does."""
    ending = asyncio.Event()
    async with assemble(settings) as wiring:
        drills_of(settings.drills)  # a faulty file is found now
        channels = open_channels(settings).attach(wiring)
        settle_memory()
        await _await_live(wiring, stopping)
        jumps, rush, trouble = JumpDetector(wiring), Rush(wiring.schedule), Trouble("tick_failed")
        precomputing = Precomputing(wiring, rush)
        beside = asyncio.create_task(run_loops(Clock(wiring, channels, queue, rush, ending)))
        while not stopping.is_set() and wiring.store.counts.move is None:
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
        ending.set()
        await beside
        await channels.aclose()


async def _await_live(wiring: Wiring, stopping: asyncio.Event) -> None:
    settings, trouble = wiring.settings, Trouble("clock_waits_for_store")
    while not stopping.is_set():
        try:
            await check_format(settings.store_url, Macs(settings.key_file))
            await wiring.store.counts.require()
            trouble.over()
            return
        except Unavailable as error:
            trouble.note(error)
            await wait(stopping, TICK_S)


def main(settings: Settings) -> int:
    """Tick until stopped; return 1 for unusable rules, or a store with a later format."""

    async def run() -> None:
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        log.info("clock_started")
        queue = DrainQueue(settings.jobs_url, settings.drain_window_s, settings.tenant)
        await run_clock(settings, stopping, queue)
        queue.close()

    try:
        uvloop.run(await_store(settings.store_url))
        uvloop.run(run())
    except (InvalidInput, OtherFormat, Unavailable) as error:
        log.error("not_started", error=error.message)
        return 1
    return 0
