"""Share out a few places: so many at once for each name, and no more; or one after the other."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from sayso.errors import TooManyRequests


class Slots:
    """Places by name, in this process."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, names: Iterable[str]) -> Iterator[bool]:
        """Hold a place under every name for the length of the block; False, and none held, if one is full."""
        wanted = tuple(names)
        free = all(self._taken[name] < self._each for name in wanted)
        if free:
            self._taken.update(wanted)
        try:
            yield free
        finally:
            if free:
                self._taken.subtract(wanted)
                self._taken += Counter()


class Turns:
    """One place for each name, in this process; a few more may wait for it in line."""

    def __init__(self, waiting: int) -> None:
        self._line = Slots(waiting)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Hold the name's place for the length of the block, once it is free; `TooManyRequests` in a full line."""
        with self._line.take((name,)) as free:
            if not free:
                raise TooManyRequests("Too much of yours is being evaluated already. Wait for it.", retry_after_s=2)
            lock = self._locks.setdefault(name, asyncio.Lock())
            async with lock:
                yield
