"""A rush: more deadlines at one time than the clock can apply. What can wait makes room for it.

Counting in the clock's own process waits, and so do workers, before they take more of a long ready list. Neither waits
longer than the rush may last, so that nothing starves when the clock stays late.
"""

import asyncio
from contextlib import suppress
from math import inf

from sayso.core.clock import monotonic_ms
from service.core.store.suspensions.schedule import Schedule

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
