"""Connect to the store, and turn whatever goes wrong there into one error of ours.

Commands are never re-sent by the client: a commit whose reply was lost is settled by reading again.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import structlog
from redis import Redis as BlockingRedis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import BusyLoadingError, OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.errors import Unavailable

_LOG = structlog.get_logger(__name__)

LOST = (RedisConnectionError, RedisTimeoutError, OSError)
"""After these nobody knows whether the server has run the command."""

_REFUSED = (BusyLoadingError, ReadOnlyError, OutOfMemoryError)
_BUSY = ("OOM", "MISCONF", "LOADING", "READONLY", "NOREPLICAS")


def connect(url: str, *, blocking: bool = False) -> Redis:
    """Return a client for `redis://`, `rediss://` or `unix://`; a blocking one waits without a time limit."""
    pool = ConnectionPool.from_url(
        url,
        max_connections=2048,
        socket_timeout=None if blocking else 5,
        socket_connect_timeout=5,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
    return Redis(connection_pool=pool)


class _UnixConnection(UnixDomainSocketConnection):
    """A blocking connection over a Unix socket; redis-py 7.2.0, which AFK pins, reads a port from it."""

    port = 0


def connect_blocking(url: str, **options: Any) -> BlockingRedis:
    """Return a blocking client for `redis://`, `rediss://` or `unix://`."""
    if url.startswith("unix://"):
        options["connection_class"] = _UnixConnection
    return BlockingRedis.from_url(url, **options)


def text(raw: bytes | str) -> str:
    """Return a name or id that came from the store."""
    return raw.decode() if isinstance(raw, bytes) else raw


def translated() -> AbstractAsyncContextManager[None]:
    """Raise `Unavailable` for whatever the store could not do just now."""
    return _TRANSLATION


class _Translation(AbstractAsyncContextManager[None]):
    """Holds nothing, so that one is enough for all."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, _REFUSED):
            raise Unavailable(f"The store refuses this just now: {error}") from error
        if isinstance(error, LOST):
            raise Unavailable() from error
        if isinstance(error, ResponseError) and str(error).startswith(_BUSY):
            raise Unavailable(f"The store refuses writes just now ({str(error).split(' ', 1)[0]}).") from error
        if isinstance(error, ResponseError):
            _LOG.error("store_refused", error=str(error))  # it will not pass by itself, unlike the others
            raise Unavailable(f"The store refuses what Sayso asks of it: {error}. Tell the operator.") from error


_TRANSLATION = _Translation()
