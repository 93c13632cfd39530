"""Withdraw what revoked keys asked, beside the clock's beat.

The request that revokes a key withdraws at once. This does it again, for a service that died on the way, and for what
was asked by a request that was under way at that moment.
"""

import asyncio
from contextlib import suppress

import structlog

from sayso.clock import monotonic_ms
from service.logs import Trouble
from service.operations.withdrawals import withdraw_runs
from service.store.people import ApiKey
from service.wiring import Wiring

EVERY_S = 1.0
AGAIN_MS = 5_000
"""Longer than any process trusts a checked key, so that the second pass finds all there is."""

log = structlog.get_logger()


class Withdrawals:
    """The two passes over what each revoked key asked."""

    def __init__(self, wiring: Wiring, again_ms: int = AGAIN_MS) -> None:
        self._wiring = wiring
        self._again_ms = again_ms
        self._first_ms: dict[str, float] = {}

    async def sweep(self) -> None:
        """Make the pass that is due for every revoked key."""
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
    """Sweep until told to stop, through any absence of the store."""
    withdrawals, trouble = Withdrawals(wiring), Trouble("withdrawing_failed")
    while not stopping.is_set():
        try:
            await withdrawals.sweep()
            trouble.over()
        except Exception as error:  # noqa: BLE001  this outlives whatever is wrong, and says so
            trouble.note(error)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), EVERY_S)
