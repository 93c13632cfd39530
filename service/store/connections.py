"""Connect to the store, and turn whatever goes wrong there into one error of ours.

Commands are never re-sent by the client: a commit whose reply was lost is settled by reading again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.errors import Unavailable

LOST = (RedisConnectionError, RedisTimeoutError, OSError)
"""After these nobody knows whether the server has run the command."""

_REFUSED = (BusyLoadingError, ReadOnlyError, OutOfMemoryError)


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


def text(raw: bytes | str) -> str:
    """Return a name or id that came from the store."""
    return raw.decode() if isinstance(raw, bytes) else raw


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Raise `Unavailable` for whatever the store could not do just now."""
    try:
        yield
    except (*LOST, *_REFUSED) as error:
        raise Unavailable() from error
    except ResponseError as error:
        if str(error).startswith(("OOM", "MISCONF", "LOADING", "READONLY", "NOREPLICAS")):
            raise Unavailable(f"The store refuses writes just now ({str(error).split(' ', 1)[0]}).") from error
        raise
