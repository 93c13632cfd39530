"""Remember for less than a second what every step needs to know and what seldom changes."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from sayso.clock import monotonic_ms
from sayso.errors import Unavailable

KEPT_MS = 500
"""How long what was read is good for: a revocation or a freeze takes hold everywhere within a second."""

_AHEAD_MS = 300

Value = TypeVar("Value")


class Memory(Generic[Value]):
    """What `read` told of each tenant, read anew beside the work before it grows too old."""

    def __init__(self, read: Callable[[str], Awaitable[Value]]) -> None:
        self._read = read
        self._held: dict[str, tuple[Value, float]] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}

    async def find(self, tenant: str, *, fresh: bool = False) -> Value:
        """Return what holds as of less than a second ago, or, fresh, as of now."""
        held = self._held.get(tenant)
        left_ms = held[1] - monotonic_ms() if held is not None else 0.0
        if held is None or fresh or left_ms <= 0:
            return await self._look(tenant)
        if left_ms < _AHEAD_MS and tenant not in self._reading:
            self._reading[tenant] = asyncio.create_task(self._look_ahead(tenant))
        return held[0]

    def last(self, tenant: str) -> Value | None:
        """Return what held when this process last looked, without looking; None where it never has."""
        held = self._held.get(tenant)
        return held[0] if held is not None else None

    async def _look(self, tenant: str) -> Value:
        asked_at_ms = monotonic_ms()
        value = await self._read(tenant)
        held = self._held.get(tenant)
        if held is None or held[1] < asked_at_ms + KEPT_MS:  # a look that began later may have come back first
            self._held[tenant] = (value, asked_at_ms + KEPT_MS)
        return value

    async def _look_ahead(self, tenant: str) -> None:
        try:
            with suppress(Unavailable):
                await self._look(tenant)
        finally:
            del self._reading[tenant]
