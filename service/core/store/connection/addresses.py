"""Pools of connections to the store of a URL. Behind sentinels, each new connection goes to the primary they name.

redis-py's pools of sentinels close idle connections once the primary is another one, and those that meet a demoted one.
"""

from collections.abc import Mapping
from typing import Any

from redis import ConnectionPool as BlockingPool
from redis.asyncio import ConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.connection import UnixDomainSocketConnection, parse_url
from redis.driver_info import DriverInfo
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry as BlockingRetry
from redis.sentinel import MasterNotFoundError
from redis.sentinel import Sentinel as BlockingSentinel
from redis.sentinel import SentinelConnectionPool as BlockingSentinelPool

from service.core.settings.stores import Sentinels, read_sentinels

NO_PRIMARY = (MasterNotFoundError, AsyncMasterNotFoundError)
"""What a connection raises when no sentinel that answers names a living primary."""

_ANSWER_S = 1  # a sentinel that takes longer is passed over
_DRIVER = DriverInfo()  # redis-py reads its own metadata, a millisecond, for each connection that is not given it


class _UnixConnection(UnixDomainSocketConnection):
    """A blocking connection over a Unix socket, with the `port` that redis-py 7.2.0 (pinned by AFK) reads."""

    port = 0


def open_pool(url: str, **options: Any) -> ConnectionPool:
    """Return a pool of connections, with redis-py's `options`."""
    sentinels = read_sentinels(url)
    if sentinels is None:
        return ConnectionPool.from_url(url, driver_info=_DRIVER, **options)
    store, ask = _read_options(sentinels)
    manager = Sentinel(sentinels.addresses, sentinel_kwargs={**ask, "retry": Retry(NoBackoff(), 0)})  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(sentinels.name, manager, driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]


def open_blocking_pool(url: str, **options: Any) -> BlockingPool:
    """Return a pool of blocking connections, with redis-py's `options`."""
    sentinels = read_sentinels(url)
    if sentinels is None:
        if url.startswith("unix://"):
            options["connection_class"] = _UnixConnection
        return BlockingPool.from_url(url, driver_info=_DRIVER, **options)
    store, ask = _read_options(sentinels)
    manager = BlockingSentinel(sentinels.addresses, sentinel_kwargs={**ask, "retry": BlockingRetry(NoBackoff(), 0)})  # type: ignore[no-untyped-call]
    return BlockingSentinelPool(sentinels.name, manager, driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]


def _read_options(sentinels: Sentinels) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the options of connections to the store, and of those to a sentinel; both use TLS, or neither."""
    options = parse_url(sentinels.store_url)  # type: ignore[no-untyped-call]
    for name in ("host", "port"):
        options.pop(name, None)
    secure = {"ssl": True} if options.pop("connection_class", None) is not None else {}
    tls = {**secure, **{name: value for name, value in options.items() if name.startswith("ssl_")}}
    ask = {
        **tls,
        "username": sentinels.username,
        "password": sentinels.password,
        "socket_timeout": _ANSWER_S,
        "socket_connect_timeout": _ANSWER_S,
        "driver_info": _DRIVER,
    }
    return {**options, **secure}, ask


async def describe_sentinels(url: str) -> str:
    """Return what each sentinel of a URL says about the primary, for an operator."""
    sentinels = read_sentinels(url)
    if sentinels is None:
        return ""
    _, ask = _read_options(sentinels)
    facts = []
    for host, port in sentinels.addresses:
        async with AsyncRedis(host=host, port=port, **ask, retry=Retry(NoBackoff(), 0)) as sentinel:
            facts.append(f"{host}:{port} {await _describe_sentinel(sentinel, sentinels.name)}")
    return "; ".join(facts)


async def _describe_sentinel(sentinel: AsyncRedis, name: str) -> str:
    try:
        masters: Any = await sentinel.sentinel_masters()
    except ResponseError as error:
        return f"is no sentinel, or refuses: {error}"
    except RedisError as error:
        return f"does not answer: {str(error).rstrip('.')}"
    if name not in masters:
        return f"knows {' and '.join(map(repr, masters)) or 'no store'}, not {name!r}"
    known = masters[name]
    state = "is down" if known["is_sdown"] or known["is_odown"] else "answers it"
    return f"names {known['ip']}:{known['port']}, which {state}"


async def find_sentinel_url(url: str) -> str | None:
    """Return the URL to write instead of a `redis://` URL of a sentinel's own port, or None for any other server."""
    if not url.startswith(("redis://", "rediss://")):
        return None
    given = parse_url(url)  # type: ignore[no-untyped-call]
    secure = {"ssl": True} if given.pop("connection_class", None) is not None else {}
    login = {name: given.pop(name, None) for name in ("username", "password")}
    given.pop("db", None)
    for credentials in (login, {}):
        options = {**given, **secure, **credentials, "socket_timeout": _ANSWER_S, "retry": Retry(NoBackoff(), 0)}
        async with AsyncRedis(**options) as server:
            try:
                masters: Any = await server.sentinel_masters()
            except (RedisError, OSError):
                continue
        scheme = "rediss+sentinel" if secure else "redis+sentinel"
        return f"{scheme}://{given['host']}:{given.get('port', 6379)}/{next(iter(masters), 'NAME')}"
    return None
