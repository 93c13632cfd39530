"""Changes at the deadlines of the next seconds, computed in advance so that many can pass at one moment.

Each is committed at its deadline if suspension and freezes did not change. Otherwise an ordinary tick applies.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from math import inf
from operator import attrgetter

from sayso.core.clock import monotonic_ms
from service.core.desk.scheduling import Precomputed
from service.core.store.suspensions.batches import PrecomputedCommit
from service.core.wiring import Wiring
from workers.clock.ticks import Rush

AHEAD_MS = 10_000
"""How long before its deadline a change is computed."""

_COMPUTED_AT_ONCE = 50
"""Number computed between two ticks; takes about 10 ms."""

LATE_MS = 800
_SIZES = ((LATE_MS // 4, 12), (LATE_MS, 25), (inf, 100))
"""Lateness in ms, up to which so many changes share a write.

A write blocks the store: 12 changes take about 0.5 ms. Decisions go first until deadlines are late, as with a slow
disk; then many changes share one write.
"""

_ON_THE_WAY = 2
"""Number of writes in flight: the next arrives while the store executes one."""

_TICK_MS = 10
_MOST = 10_000
"""Limit of computed changes, about 2 kB each; later deadlines are ticked when due."""


class Precomputing:
    """The precomputed changes of one clock."""

    def __init__(self, wiring: Wiring, rush: Rush) -> None:
        self._wiring = wiring
        self._rush = rush
        self._seen_to_ms = 0
        self._ahead: deque[str] = deque()
        self._coming = Precomputed((), ())

    async def look_ahead(self, now_ms: int) -> int:
        """Compute the changes of some of the next deadlines; return the number of suspensions read."""
        until_ms = now_ms + AHEAD_MS
        if not self._ahead:
            free = _MOST - len(self._coming.commits)
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
