"""Limits of concurrency per key, in this process."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from sayso.errors import TooManyRequests


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
