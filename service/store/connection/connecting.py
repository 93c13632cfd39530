"""Connections to the store, without retries, and its failures as `Unavailable`."""

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

LOST = (RedisConnectionError, RedisTimeoutError, OSError)  # the server may have run the command

WRITING = "#!lua\nreturn redis.call('TIME')"
"""A script that a store which accepts no writes refuses; it writes nothing."""

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
    """A blocking connection over a Unix socket, with the `port` that redis-py 7.2.0 (pinned by AFK) reads."""

    port = 0


def connect_blocking(url: str, **options: Any) -> BlockingRedis:
    """Return a blocking client for `redis://`, `rediss://` or `unix://`."""
    if url.startswith("unix://"):
        options["connection_class"] = _UnixConnection
    return BlockingRedis.from_url(url, **options)


def text(raw: bytes | str) -> str:
    """Decode a name or id from the store."""
    return raw.decode() if isinstance(raw, bytes) else raw


def as_ms(seconds: bytes | int, micros: bytes | int) -> int:
    """Return the server's time in ms from the reply to TIME."""
    return int(seconds) * 1000 + int(micros) // 1000


def is_refusal(error: BaseException) -> bool:
    """Return whether the store refuses writes, or everything, until its operator or its replicas change that."""
    if isinstance(error, _REFUSED):
        return True
    # In a pipeline, redis-py puts its own words before the server's.
    return isinstance(error, ResponseError) and str(error).rpartition("caused error: ")[2].startswith(_BUSY)


def translated() -> AbstractAsyncContextManager[None]:
    """Raise `Unavailable` for an error of the store."""
    return _TRANSLATION


class _Translation(AbstractAsyncContextManager[None]):
    """The context manager of `translated`; stateless, so one instance serves all calls."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if is_refusal(error):
            raise Unavailable(f"The store refuses this just now: {error}") from error
        if isinstance(error, LOST):
            raise Unavailable() from error
        if isinstance(error, ResponseError):
            _LOG.error("store_refused", error=str(error))  # unlike the others, it does not pass by itself
            raise Unavailable(f"The store refuses what Sayso asks of it: {error}. Tell the operator.") from error


_TRANSLATION = _Translation()
