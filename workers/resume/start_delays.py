"""How late this process takes runs, added to the counts in the store once a second."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Unavailable
from service.core.store.load import Starts, count_delay

SAVED_EVERY_S = 1.0


class StartDelays:
    """The delays that are not yet in the store; a process that is killed loses those of the last second."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._counts: Counter[str] = Counter()

    def note(self, record: SuspensionRecord, now_ms: int) -> None:
        """Count a run that begins now, at the store's time."""
        if record.receipt.enqueued_at_ms is not None:
            self._counts.update(count_delay(now_ms - record.receipt.enqueued_at_ms))

    async def save(self) -> None:
        """Add what was counted; a store that is away gets it the next time."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await self._starts.add(counts)
        except Unavailable:
            self._counts.update(counts)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Save every second, and at the end."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await self.save()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(SAVED_EVERY_S)
            await self.save()
