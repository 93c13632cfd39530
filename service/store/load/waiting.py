"""Workers that take runs at once: a decision hands its run to one of them; see `docs/decisions/hand-over.md`."""

import asyncio
from math import inf

from sayso.core.clock import monotonic_ms
from sayso.core.transitions.execution import WaitingWorker
from sayso.errors import Unavailable
from service.store.connection.commits import MOST_HANDED
from service.store.connection.connecting import as_ms, text, translated
from service.store.connection.pipeline import Script
from service.store.keys import TenantKeys
from service.store.lua import read_script
from service.store.tenants import Connections

ANNOUNCED_MS = 2_000
"""How long a worker counts as waiting after it said so."""

_FRESH_MS = 500
_KNOWN_MS = 60_000
"""The age up to which a list of waiting workers is used while a new one is read; the commit checks the choice."""

_ABANDONED_MS = 1_000
_ANNOUNCE = Script(read_script("announce"))


class WaitingWorkers:
    """The waiting workers of one tenant, as this process knows them."""

    def __init__(self, connections: Connections, keys: TenantKeys) -> None:
        self._connections, self._keys = connections, keys
        self._known: list[WaitingWorker] = []
        self._read_at_ms = -inf
        self._reading: asyncio.Task[None] | None = None
        self._turn = 0

    async def announce(self, name: str, for_ms: int = ANNOUNCED_MS) -> None:
        """Let decisions hand runs to this worker for a while; for 0 ms ends that."""
        async with translated():
            time = await self._connections.changes.run(_ANNOUNCE, [self._keys.waiting], [name, for_ms])
        self._connections.time_read = (as_ms(*time), monotonic_ms())

    async def take_rest(self, name: str) -> list[bytes]:
        """Take what was handed to a worker that has ended its waiting, and forget it."""
        pipeline = self._connections.changes
        async with translated():
            entries = await pipeline.ask("LPOP", self._keys.handed(name), MOST_HANDED)
            await pipeline.ask("ZREM", self._keys.waiting, name)
        return entries or []

    async def list_gone(self) -> list[str]:
        """Return the names of the workers that have not said for a while that they wait."""
        pipeline = self._connections.changes
        async with translated():
            until_ms = as_ms(*await pipeline.ask("TIME")) - _ABANDONED_MS
            names = await pipeline.ask("ZRANGE", self._keys.waiting, "-inf", until_ms, "BYSCORE")
        return [text(name) for name in names]

    async def look(self) -> None:
        """Find out which workers wait. While decisions come often, they do not wait for the answer."""
        age_ms = monotonic_ms() - self._read_at_ms
        if age_ms > _KNOWN_MS:
            await self._read()
        elif age_ms > _FRESH_MS and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read())

    def choose(self) -> WaitingWorker | None:
        """Return a waiting worker, each in its turn; None without any."""
        if not self._known:
            return None
        self._turn += 1
        return self._known[self._turn % len(self._known)]

    def forget(self, name: str) -> None:
        """Choose another worker: this one no longer waits, or has enough before it."""
        self._known = [worker for worker in self._known if worker.name != name]

    async def _read(self) -> None:
        self._read_at_ms = monotonic_ms()
        read_ms, at_ms = self._connections.time_read
        after_ms = read_ms + int(monotonic_ms() - at_ms) if read_ms else 0
        try:
            async with translated():
                members = await self._connections.changes.ask("ZRANGE", self._keys.waiting, after_ms, "+inf", "BYSCORE")
        except Unavailable:
            members = []  # runs go to the ready list
        self._known = [WaitingWorker.read(text(member)) for member in members]
