"""Connections that carry one request after another, to one receiver each: a scheme, host (the TLS name) and port.

The address was checked when the connection was opened, by a backend whose rules do not change; it stays the same while
it is open. httpcore's own pool checks all of its connections for each request: with 64 that costs more than a new one.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import httpcore

from sayso.core.clock import monotonic_ms

IDLE_S = 2.0  # before most servers close a connection by themselves
_OLDEST_MS = 60_000  # then a name is resolved and checked again
_MOST_CONNECTIONS = 1_024
_MOST_IDLE = 512

Headers = Mapping[str | bytes, str | bytes]


class _Kept(NamedTuple):
    connection: httpcore.AsyncConnectionInterface
    opened_at_ms: float


class KeptConnections:
    """The connections that one pool of httpcore opens, at most `_MOST_CONNECTIONS` in use, and `most_idle` kept."""

    def __init__(
        self, pool: httpcore.AsyncConnectionPool, *, most_idle: int = _MOST_IDLE, oldest_ms: float = _OLDEST_MS
    ) -> None:
        self._pool, self._places = pool, asyncio.Semaphore(_MOST_CONNECTIONS)
        self._most_idle, self._oldest_ms = most_idle, oldest_ms
        self._idle: dict[str, list[_Kept]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        every = [kept for idle in self._idle.values() for kept in idle]
        self._idle.clear()
        await _close(every)

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Headers, body: bytes | None, *, repeatable: bool
    ) -> AsyncIterator[httpcore.Response]:
        """Send a request, over a connection that is open already where it is `repeatable`.

        The receiver may close that one at any moment; then the request is sent again over a new one.
        """
        origin = httpcore.URL(url).origin
        async with self._places, AsyncExitStack() as exchange:
            kept, response = self._take(str(origin)) if repeatable else None, None
            if kept is not None:
                try:
                    response = await self._send(exchange, kept, method, url, headers, body)
                except _CLOSED:
                    kept = None
            if kept is None:
                kept = _Kept(self._pool.create_connection(origin), monotonic_ms())
            try:
                if response is None:
                    response = await self._send(exchange, kept, method, url, headers, body)
                yield response
                await exchange.aclose()
            finally:
                await self._put_back(str(origin), kept, keep=repeatable)

    async def _send(
        self, exchange: AsyncExitStack, kept: _Kept, method: str, url: str, headers: Headers, body: bytes | None
    ) -> httpcore.Response:
        sending = kept.connection.stream(method, url, headers=headers, content=body)
        return await exchange.enter_async_context(sending)

    def _take(self, origin: str) -> _Kept | None:
        """Return an idle connection, the last one used; expired ones wait for the sweep."""
        idle = self._idle.get(origin, [])
        return idle.pop() if idle and not self._is_over(idle[-1]) else None

    async def _put_back(self, origin: str, kept: _Kept, *, keep: bool) -> None:
        is_full = sum(map(len, self._idle.values())) >= self._most_idle
        if not keep or is_full or not kept.connection.is_idle() or self._is_over(kept):
            await _close([kept])
            return
        self._idle.setdefault(origin, []).append(kept)
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Close what nobody used for a while, until nothing is idle."""
        while self._idle:
            await asyncio.sleep(IDLE_S)
            for origin, idle in list(self._idle.items()):
                over = [kept for kept in idle if self._is_over(kept)]
                idle[:] = [kept for kept in idle if kept not in over]
                if not idle:
                    del self._idle[origin]
                await _close(over)

    def _is_over(self, kept: _Kept) -> bool:
        return kept.connection.has_expired() or monotonic_ms() - kept.opened_at_ms >= self._oldest_ms


_CLOSED = (httpcore.NetworkError, httpcore.RemoteProtocolError, httpcore.ConnectionNotAvailable)


async def _close(some: Iterable[_Kept]) -> None:
    """Close connections, all of them even where one is broken."""
    await asyncio.gather(*(kept.connection.aclose() for kept in some), return_exceptions=True)
