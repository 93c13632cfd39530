"""Withdrawal of runs of revoked keys in the clock's process, in case the service died or raced a request."""

import asyncio

import structlog

from sayso.core.clock import monotonic_ms
from service.core.operations.runs import withdraw_runs
from service.core.store.people import ApiKey
from service.core.wiring import Wiring
from workers.repeating import repeat

EVERY_S = 1.0
AGAIN_MS = 5_000
"""Longer than any process caches a checked key, so that the second pass is complete."""

log = structlog.get_logger()


class Withdrawals:
    """The two passes over the runs of each revoked key."""

    def __init__(self, wiring: Wiring, again_ms: int = AGAIN_MS) -> None:
        self._wiring = wiring
        self._again_ms = again_ms
        self._first_ms: dict[str, float] = {}

    async def sweep(self) -> None:
        for key in await self._wiring.api_keys.list_all():
            if key.revoked_at_ms is not None and not key.withdrawn:
                await self._withdraw(key)

    async def _withdraw(self, key: ApiKey) -> None:
        began_ms = monotonic_ms()
        first_ms = self._first_ms.get(key.id)
        if first_ms is not None and began_ms - first_ms < self._again_ms:
            return
        if cancelled := await withdraw_runs(self._wiring, key.name):
            log.info("runs_withdrawn", key=key.id, name=key.name, runs=cancelled)
        if first_ms is None:
            self._first_ms[key.id] = began_ms
        else:
            await self._wiring.api_keys.note_withdrawn(key.id)
            del self._first_ms[key.id]


async def keep_withdrawing(wiring: Wiring, stopping: asyncio.Event) -> None:
    """Sweep until stopped."""
    await repeat(Withdrawals(wiring).sweep, EVERY_S, stopping, "withdrawing_failed")
