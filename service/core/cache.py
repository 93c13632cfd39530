"""A 500 ms cache, which checks the age of its value itself, and the background refresh that saves time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

import structlog

from sayso.core.clock import monotonic_ms
from sayso.errors import Altered, Unavailable

KEPT_MS = 500  # the age, ms, up to which a value counts: revocations and freezes apply everywhere within a second
EVERY_S = 0.25  # between two refreshes
SHARED_MS = 250  # how long after its begin a read also answers those who ask later
USED_WITHIN_MS = 300_000  # how long after its last use a cache is refreshed

Value = TypeVar("Value")
Refresh = Callable[[], Awaitable[None]]

_LOG = structlog.get_logger(__name__)


def share(work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
    """Start work that callers await through a shield; asyncio reports no error of it if all of them have gone."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


class Refresher:
    """Refreshes the caches in use of one process together, so that their reads share round trips."""

    def __init__(self, clock_ms: Callable[[], float] = monotonic_ms) -> None:
        self.clock_ms = clock_ms
        self._used: dict[Refresh, float] = {}
        self._running: asyncio.Task[None] | None = None
        self._stopped = False

    def note_use(self, refresh: Refresh) -> None:
        """Call `refresh` in the background until five minutes after the last note."""
        if self._stopped:
            return
        self._used[refresh] = self.clock_ms()
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def refresh(self) -> None:
        since_ms = self.clock_ms() - USED_WITHIN_MS
        self._used = {refresh: at_ms for refresh, at_ms in self._used.items() if at_ms > since_ms}
        for result in await asyncio.gather(*(refresh() for refresh in self._used), return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, Altered | Unavailable):
                _LOG.error("cache_not_refreshed", exc_info=result)  # its next use reads and meets the same error

    def stop(self) -> None:
        """Refresh nothing from now on; caches are read when they are used."""
        self._stopped = True
        self._used.clear()
        if self._running is not None:
            self._running.cancel()
            self._running = None

    async def _run(self) -> None:
        while self._used:
            await asyncio.sleep(EVERY_S)
            await self.refresh()
        self._running = None


class Cache(Generic[Value]):
    """A value of the store, as of less than a second ago. With a `refresher` its uses seldom wait for a read."""

    def __init__(self, read: Callable[[], Awaitable[Value]], refresher: Refresher | None = None) -> None:
        self._read, self._refresher = read, refresher
        self._clock_ms = refresher.clock_ms if refresher is not None else monotonic_ms
        self._held: tuple[Value, float] | None = None
        self._reading: tuple[asyncio.Task[Value], float] | None = None

    async def find(self, *, fresh: bool = False) -> Value:
        """Return the value as of less than a second ago or, with `fresh`, as of now."""
        if self._refresher is not None:
            self._refresher.note_use(self._refresh)
        held = self._held
        if held is None or fresh or self._clock_ms() >= held[1]:
            return await (self._find_now() if fresh else self._find_together())
        return held[0]

    def last(self) -> Value | None:
        """Return the value of the last read without reading; None before the first."""
        return self._held[0] if self._held is not None else None

    async def _find_together(self) -> Value:
        """Share a read with all who ask soon after it began: many reads at once would slow what they wait for."""
        now_ms = self._clock_ms()
        if self._reading is None or self._reading[0].done() or now_ms >= self._reading[1] + SHARED_MS:
            self._reading = share(self._find_now()), now_ms
        return await asyncio.shield(self._reading[0])

    async def _find_now(self) -> Value:
        began_at_ms = self._clock_ms()
        value = await self._read()
        if self._held is None or self._held[1] < began_at_ms + KEPT_MS:  # a later read may have returned first
            self._held = (value, began_at_ms + KEPT_MS)
        return value

    async def _refresh(self) -> None:
        await self._find_now()
