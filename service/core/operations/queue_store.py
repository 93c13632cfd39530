"""The store of the queue of jobs, where it is another than that of the records."""

import asyncio

from sayso.core.clock import monotonic_ms
from sayso.errors import Unavailable
from service.core.jobs import count_workers
from service.core.settings.stores import hide_password
from service.core.store.connection.connecting import await_store
from service.core.wiring import Wiring

_KEPT_MS = 2_000
_WAIT_S = 1.0  # probes of readiness wait for two


class QueueStore:
    """Asks the store at most once in two seconds, however many callers there are."""

    def __init__(self, wiring: Wiring) -> None:
        self._url, self._asking = wiring.settings.queue_url, asyncio.Lock()
        self._fault, self._until_ms = "", 0.0

    async def find_fault(self) -> str:
        """Return a sentence that says why the store takes no jobs; empty where it does, or is that of the records."""
        if self._url is None:
            return ""
        async with self._asking:
            if monotonic_ms() >= self._until_ms:
                self._fault = await _ask(self._url)
                self._until_ms = monotonic_ms() + _KEPT_MS
        return self._fault


async def count_live_workers(wiring: Wiring) -> int:
    """Return how many workers of the tenant beat lately, 0 while the queue's store is away."""
    try:
        return await asyncio.to_thread(count_workers, wiring.settings.jobs_url, wiring.tenant)
    except Unavailable:
        return 0


async def _ask(url: str) -> str:
    setting = "SAYSO_QUEUE_URL"
    try:
        async with asyncio.timeout(_WAIT_S):
            await await_store(url, wait_s=0, setting=setting)
    except Unavailable as error:
        return error.message
    except TimeoutError:
        return f"The store at {hide_password(url)} takes longer than {_WAIT_S:g} s. Start it, or correct {setting}."
    return ""
