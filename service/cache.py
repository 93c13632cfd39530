"""A 500 ms cache."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from sayso.clock import monotonic_ms
from sayso.errors import Unavailable

KEPT_MS = 500  # the age, ms, up to which a value counts: revocations and freezes apply everywhere within a second
_AHEAD_MS = 300

Value = TypeVar("Value")


class Memory(Generic[Value]):
    """A value read from the store, read again in the background before it grows too old."""

    def __init__(self, read: Callable[[], Awaitable[Value]]) -> None:
        self._read = read
        self._held: tuple[Value, float] | None = None
        self._reading: asyncio.Task[None] | None = None

    async def find(self, *, fresh: bool = False) -> Value:
        """Return the value as of less than a second ago or, with `fresh`, as of now."""
        held = self._held
        left_ms = held[1] - monotonic_ms() if held is not None else 0.0
        if held is None or fresh or left_ms <= 0:
            return await self._refresh()
        if left_ms < _AHEAD_MS and self._reading is None:
            self._reading = asyncio.create_task(self._refresh_ahead())
        return held[0]

    def last(self) -> Value | None:
        """Return the value of the last read without reading; None before the first."""
        return self._held[0] if self._held is not None else None

    async def _refresh(self) -> Value:
        began_at_ms = monotonic_ms()
        value = await self._read()
        if self._held is None or self._held[1] < began_at_ms + KEPT_MS:  # a later read may have returned first
            self._held = (value, began_at_ms + KEPT_MS)
        return value

    async def _refresh_ahead(self) -> None:
        try:
            with suppress(Unavailable):
                await self._refresh()
        finally:
            self._reading = None
