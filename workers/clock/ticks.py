"""Ticks of the clock's process: fallbacks at deadlines, lost runs, and runs of revoked keys.

Safety does not depend on them: operations check deadlines, and requests check keys, themselves. Changes at the
deadlines of the next seconds are computed in advance, so that many can pass at one moment. Each is committed at its
deadline if suspension and freezes did not change; otherwise an ordinary tick applies.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter

import structlog

from sayso.core.clock import monotonic_ms
from sayso.core.records.freezes import Freeze
from sayso.errors import NotFound, SaysoError, Unavailable, Unreadable
from service.core.desk.scheduling import Precomputed
from service.core.operations.runs import withdraw_runs
from service.core.store.suspensions.batches import PrecomputedCommit
from service.core.store.suspensions.schedule import Schedule, read_ready
from service.core.wiring import Wiring

log = structlog.get_logger()


async def take_back_handed(wiring: Wiring) -> int:
    """Put the runs that gone workers never got on the ready list; return their number."""
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


_RUSH_FROM_MS = 30  # lateness from which it is a rush
LONGEST_RUSH_MS = 3_000  # how long a rush holds others up
_APART_MS = 10_000  # how long after its last lateness a rush is over, and others would wait again
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
        if late_ms < _RUSH_FROM_MS:
            self._calm.set()
            return
        if now_ms - self._late_at_ms > _APART_MS:
            self._began_ms = now_ms
        self._late_at_ms = now_ms
        if now_ms - self._began_ms > LONGEST_RUSH_MS:
            self._calm.set()
            return
        self._calm.clear()
        if now_ms - self._announced_ms > _ANNOUNCE_MS:
            self._announced_ms = now_ms
            await self._schedule.announce_rush(2 * _ANNOUNCE_MS)

    async def wait_over(self) -> None:
        """Wait until there is no rush, or it has lasted long enough."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._calm.wait(), LONGEST_RUSH_MS / 1000)


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
        log.error("suspension_unreadable", suspension=suspension_id, exc_info=error)
        await wiring.schedule.defer(suspension_id, await wiring.schedule.now_ms() + _UNREADABLE_AGAIN_MS)


async def _wake(wiring: Wiring, freeze: Freeze, suspension_id: str) -> None:
    try:
        await wiring.desk.wake(suspension_id, freeze)
    except Unavailable:
        raise
    except (SaysoError, ValueError) as error:
        log.warning("suspension_not_woken", suspension=suspension_id, exc_info=error)


WITHDRAWING_AGAIN_MS = 5_000  # longer than any process caches a checked key, so that the second pass is complete


class Withdrawals:
    """The two passes over the runs of each revoked key."""

    def __init__(self, wiring: Wiring, again_ms: int = WITHDRAWING_AGAIN_MS) -> None:
        self._wiring, self._again_ms = wiring, again_ms
        self._first_ms: dict[str, float] = {}

    async def sweep(self) -> None:
        for key in await self._wiring.api_keys.list_all():
            began_ms, first_ms = monotonic_ms(), self._first_ms.get(key.id)
            early = first_ms is not None and began_ms - first_ms < self._again_ms
            if key.revoked_at_ms is None or key.withdrawn or early:
                continue
            if cancelled := await withdraw_runs(self._wiring, key.name):
                log.info("runs_withdrawn", key=key.id, name=key.name, runs=cancelled)
            if first_ms is None:
                self._first_ms[key.id] = began_ms
            else:
                await self._wiring.api_keys.note_withdrawn(key.id)
                del self._first_ms[key.id]


AHEAD_MS = 10_000  # how long before its deadline a change is computed
_COMPUTED_AT_ONCE = 50  # number computed between two ticks; takes about 10 ms
VERY_LATE_MS = 800
_SIZES = ((VERY_LATE_MS // 4, 12), (VERY_LATE_MS, 25), (inf, 100))
"""Lateness in ms, up to which so many changes share a write.

A write blocks the store: 12 changes take about 0.5 ms. Decisions go first until deadlines are late, as with a slow
disk; then many changes share one write.
"""

_ON_THE_WAY = 2  # number of writes in flight: the next arrives while the store executes one
_TICK_MS = 10
_MOST_COMPUTED = 10_000  # limit of computed changes, about 2 kB each; later deadlines are ticked when due


class Precomputing:
    """The precomputed changes of one clock."""

    def __init__(self, wiring: Wiring, rush: Rush) -> None:
        self._wiring, self._rush = wiring, rush
        self._seen_to_ms = 0
        self._ahead: deque[str] = deque()
        self._coming = Precomputed((), ())

    async def look_ahead(self, now_ms: int) -> int:
        """Compute the changes of some of the next deadlines; return the number of suspensions read."""
        until_ms = now_ms + AHEAD_MS
        if not self._ahead:
            free = _MOST_COMPUTED - len(self._coming.commits)
            after_ms = max(self._seen_to_ms, now_ms)
            self._ahead += await self._wiring.schedule.deadlines(after_ms, until_ms, free)
            self._seen_to_ms = until_ms
        ids = [self._ahead.popleft() for _ in range(min(len(self._ahead), _COMPUTED_AT_ONCE))]
        if ids:
            precomputed = await self._wiring.desk.precompute(ids, until_ms)
            rest = self._coming.commits if self._coming.freezes == precomputed.freezes else ()
            together = sorted((*rest, *precomputed.commits), key=attrgetter("at_ms"))
            self._coming = Precomputed(precomputed.freezes, tuple(together))
        return len(ids)

    async def fulfil(self, now_ms: int) -> int:
        """Commit the changes whose time has come; return their number, including those that no longer apply."""
        freezes, coming = self._coming.freezes, self._coming.commits
        count = bisect_right(coming, now_ms, key=attrgetter("at_ms"))
        due, self._coming = coming[:count], Precomputed(freezes, coming[count:])
        await self._rush.note(now_ms - due[0].at_ms if due else 0)
        writes = _divide(due, now_ms - monotonic_ms())

        async def send() -> None:
            for changes in writes:
                await self._wiring.desk.fulfil(Precomputed(freezes, changes), now_ms)

        await asyncio.gather(*(send() for _ in range(_ON_THE_WAY)))
        return count

    def next_in_s(self, now_ms: int) -> float:
        """Return the time until the next change, at least a little, so that several go at once."""
        changes = self._coming.commits
        return max(_TICK_MS, changes[0].at_ms - now_ms) / 1000 if changes else inf


def _divide(due: tuple[PrecomputedCommit, ...], ahead_ms: float) -> Iterator[tuple[PrecomputedCommit, ...]]:
    """Divide due changes into writes, larger ones when late. `ahead_ms` is store time minus monotonic time."""
    while due:
        late_ms = monotonic_ms() + ahead_ms - due[0].at_ms
        size = next(size for until_ms, size in _SIZES if late_ms <= until_ms)
        yield due[:size]
        due = due[size:]
