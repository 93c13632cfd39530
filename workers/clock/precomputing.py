"""Find out beforehand what the deadlines of the next seconds will bring, so that many can pass at one moment.

Nothing is decided early: what was foreseen goes through at its moment and not before, and only where nobody has changed
the suspension and nothing was frozen meanwhile. What turns out otherwise is due like anything else, and looked at then.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from math import inf
from operator import attrgetter

from sayso.clock import monotonic_ms
from service.desk.scheduling import Precomputed
from service.store.suspensions.batches import Foreseen
from service.wiring import Wiring

AHEAD_MS = 10_000
"""How long before a deadline it is found out what it will bring."""

_FORESEEN_AT_ONCE = 50
"""How many are worked out in one go: some 10 ms, between which the clock beats and looks at what is due."""

LATE_MS = 800
_SIZES = ((LATE_MS // 2, 12), (LATE_MS, 25), (inf, 100))
"""Up to how late, ms, deadlines go so many in a write.

The store does all that has come in before it serves anybody else: 12 are some 0.7 ms of its time. Those who decide come
first until deadlines are late, as where the disk is slow: then many have to share one write to it.
"""

_ON_THE_WAY = 2
"""How many writes are on their way at once: the next comes in while the store does one."""

_TICK_MS = 10
_MOST = 10_000
"""How many are remembered, some 2 kB each; the deadlines beyond are looked at when they have come."""


class Precomputing:
    """What one clock has found out of the next seconds."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._seen_to_ms = 0
        self._ahead: deque[str] = deque()
        self._coming = Precomputed((), ())

    async def look_ahead(self, now_ms: int) -> int:
        """Find out what some of the next deadlines will bring; return how many were looked at for that."""
        until_ms = now_ms + AHEAD_MS
        if not self._ahead:
            room = _MOST - len(self._coming.foreseen)
            after_ms = max(self._seen_to_ms, now_ms)
            self._ahead += await self._wiring.schedule.deadlines(after_ms, until_ms, room)
            self._seen_to_ms = until_ms
        ids = [self._ahead.popleft() for _ in range(min(len(self._ahead), _FORESEEN_AT_ONCE))]
        if ids:
            self._keep(await self._wiring.desk.precompute(ids, until_ms))
        return len(ids)

    async def fulfil(self, now_ms: int) -> int:
        """Do what was foreseen for moments that have come; return how many that were, however they turned out."""
        freezes, coming = self._coming.freezes, self._coming.foreseen
        count = bisect_right(coming, now_ms, key=attrgetter("at_ms"))
        due, self._coming = coming[:count], Precomputed(freezes, coming[count:])
        writes = _divide(due, now_ms - monotonic_ms())

        async def send() -> None:
            for foreseen in writes:
                await self._wiring.desk.fulfil(Precomputed(freezes, foreseen), now_ms)

        await asyncio.gather(*(send() for _ in range(_ON_THE_WAY)))
        return count

    def next_in_s(self, now_ms: int) -> float:
        """Return how long it is until something known happens: a little at least, so that many go at once."""
        foreseen = self._coming.foreseen
        return max(_TICK_MS, foreseen[0].at_ms - now_ms) / 1000 if foreseen else inf

    def _keep(self, found: Precomputed) -> None:
        """Keep it with the rest; what was foreseen under other freezes would not come true."""
        rest = self._coming.foreseen if self._coming.freezes == found.freezes else ()
        together = sorted((*rest, *found.foreseen), key=attrgetter("at_ms"))
        self._coming = Precomputed(found.freezes, tuple(together))


def _divide(due: tuple[Foreseen, ...], ahead_ms: float) -> Iterator[tuple[Foreseen, ...]]:
    """Divide what is due into writes, each as large as it is late by then; the store's time is so far ahead of ours."""
    while due:
        late_ms = monotonic_ms() + ahead_ms - due[0].at_ms
        size = next(size for until_ms, size in _SIZES if late_ms <= until_ms)
        yield due[:size]
        due = due[size:]
