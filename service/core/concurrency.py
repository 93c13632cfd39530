"""Limits of concurrency in this process: work that takes turns, and waiting requests per credential."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from sayso.core.clock import monotonic_ms
from sayso.errors import TooManyRequests

_SHARE = 16  # of those who wait at the turnstile, one in so many enters at a turn
_WORK_MS, _BREAK_S = 2, 0.0002
_RELEASE_AFTER_S = 0.05  # until the caller has returned


class Breaks:
    """Breaks of a thread that works for long, such as hashing, in which the event loop and others run."""

    def __init__(self) -> None:
        self._last_ms = monotonic_ms()

    def take(self) -> None:
        """Rest if the thread has worked for some milliseconds since the last break."""
        if monotonic_ms() - self._last_ms > _WORK_MS:
            time.sleep(_BREAK_S)
            self._last_ms = monotonic_ms()


def release_apart(values: Iterable[object]) -> None:
    """Keep large values until the caller has returned, then free one at each turn of the event loop."""
    asyncio.get_running_loop().call_later(_RELEASE_AFTER_S, _release_next, [*values])


def _release_next(values: list[object]) -> None:
    if values:
        values.pop()
        asyncio.get_running_loop().call_soon(_release_next, values)


class Slots:
    """A number of slots for each key."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._held: Counter[str] = Counter()

    @contextmanager
    def take(self, names: Iterable[str]) -> Iterator[bool]:
        """Hold a slot of every key during the block; yield False, and hold none, if a key has no free slot."""
        keys = tuple(names)
        free = all(self._held[name] < self._each for name in keys)
        if free:
            self._held.update(keys)
        try:
            yield free
        finally:
            if free:
                self._held.subtract(keys)
                self._held += Counter()


class Turns:
    """One slot for each key; a few more callers may wait."""

    def __init__(self, waiting: int) -> None:
        self._waiting = Slots(waiting)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Wait for the slot of a key and hold it during the block; raises `TooManyRequests` if too many wait."""
        with self._waiting.take((name,)) as free:
            if not free:
                raise TooManyRequests(
                    "Too many of your requests are being evaluated. Wait until they end.", retry_after_s=2
                )
            lock = self._locks.setdefault(name, asyncio.Lock())
            async with lock:
                yield


class Turnstile:
    """Lets in one caller at each turn of the event loop, and a share of those who wait; other work comes in between."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open = True

    async def enter(self) -> None:
        """Wait for the caller's place in the queue; the first of a turn enters at once."""
        loop = asyncio.get_running_loop()
        if self._open:
            self._open = False
            loop.call_soon(self._turn)
            return
        place = loop.create_future()
        self._waiting.append(place)
        await place

    def _turn(self) -> None:
        if not self._waiting:
            self._open = True
            return
        for _ in range(1 + len(self._waiting) // _SHARE):
            place = self._waiting.popleft()
            if not place.done():  # its caller may be gone
                place.set_result(None)
        asyncio.get_running_loop().call_soon(self._turn)


RETRY_AFTER_S = 5


class Waiters:
    """Slots for long polls and streams, by the credential's name."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._slots = Slots(each)

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Hold a slot during the block; raises `TooManyRequests` at the limit."""
        with self._slots.take((name,)) as free:
            if not free:
                raise TooManyRequests(
                    f"{name} already has {self._each} waiting requests and streams, the limit per key "
                    f"(SAYSO_WAITS_PER_KEY). Close some of them, or retry in {RETRY_AFTER_S} s.",
                    limit=self._each,
                    retry_after_s=RETRY_AFTER_S,
                )
            yield
