"""The clock's process: it ticks over due suspensions, and runs what else is done at its time. Any number may run."""

import asyncio
import signal

import structlog
import uvloop

from sayso.errors import InvalidInput, Unavailable
from service.assembly import assemble
from service.channels.kinds import open_channels
from service.core.jobs import DrainQueue
from service.core.logs import Trouble, configure_logs
from service.core.settings import Settings
from service.core.store.connection.connecting import OtherFormat, await_store, check_format
from service.core.wiring import settle_memory
from service.features.control.drills import drills_of
from workers.clock.jumps import JumpDetector
from workers.clock.loops import Clock, run_loops
from workers.clock.precomputing import Precomputing
from workers.clock.rush import Rush
from workers.clock.ticks import TICK_S, process_due
from workers.repeating import wait

log = structlog.get_logger()


async def run_clock(settings: Settings, stopping: asyncio.Event, queue: DrainQueue) -> None:
    """Tick until stopped, through any outage; raises `OtherFormat` for a store that this version cannot read."""
    async with assemble(settings) as wiring:
        drills_of(settings.drills)  # a faulty file is found now
        channels = open_channels(settings).attach(wiring)
        settle_memory()
        await _await_format(settings, stopping)
        jumps, rush, trouble = JumpDetector(wiring), Rush(wiring.schedule), Trouble("tick_failed")
        precomputing = Precomputing(wiring, rush)
        beside = asyncio.create_task(run_loops(Clock(wiring, channels, queue, rush, stopping)))
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
        await beside
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
