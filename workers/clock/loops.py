"""The loops of the clock's process. Much to do in one, or a server that does not answer, delays no other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from service.channels.kinds import Channels
from service.core.jobs import DrainQueue
from service.core.wiring import Wiring
from service.features.table import FEATURES
from workers.announcing import keep_announcing
from workers.clock.handed import take_back_handed
from workers.clock.rush import Rush
from workers.clock.ticks import TICK_S, wake_unfrozen
from workers.counting import keep_counting
from workers.delivery import keep_delivering
from workers.notify.absences import AbsenceWatch
from workers.notify.addresses import ContactBook
from workers.notify.listening import keep_listening
from workers.notify.notifier import keep_notifying
from workers.repeating import repeat
from workers.retention import EVERY_S
from workers.withdrawals import keep_withdrawing


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
            await asyncio.to_thread(self.queue.put_retention)


LOOPS: tuple[Callable[[Clock], Awaitable[None]], ...] = (
    lambda clock: clock.repeat(wake_unfrozen, TICK_S, "waking_failed"),
    lambda clock: clock.repeat(take_back_handed, 1, "handed_runs_not_taken_back"),
    lambda clock: clock.repeat(clock.queue_jobs, 1, "queueing_failed"),
    lambda clock: repeat(AbsenceWatch(clock.wiring).move_cards, 1, clock.stopping, "absences_not_followed"),
    lambda clock: keep_announcing(clock.wiring, clock.stopping),
    lambda clock: keep_counting(clock.wiring, clock.rush.wait_over, clock.stopping),
    lambda clock: keep_delivering(clock.wiring, clock.stopping),
    lambda clock: keep_withdrawing(clock.wiring, clock.stopping),
    lambda clock: keep_notifying(clock.wiring, clock.channels, ContactBook(clock.wiring), clock.stopping),
    lambda clock: keep_listening(clock.wiring, clock.channels, clock.stopping),
)


async def run_loops(clock: Clock) -> None:
    """Run all loops, and the ticks of all features, until stopped."""
    ticks = [clock.repeat(*tick) for feature in FEATURES for tick in feature.ticks]
    await asyncio.gather(*(loop(clock) for loop in LOOPS), *ticks)
