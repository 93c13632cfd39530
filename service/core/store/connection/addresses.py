"""Pools of connections to the store of a URL. Behind sentinels, each new connection goes to the primary they name.

In a cluster it goes to the primary of the tenant's slot, as a node of it says.

redis-py's pools of sentinels close idle connections once the primary is another one, and those that meet a demoted one.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis import ConnectionPool as BlockingPool
from redis import Redis as BlockingRedis
from redis.asyncio import ConnectionPool
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.connection import UnixDomainSocketConnection, parse_url
from redis.crc import key_slot
from redis.driver_info import DriverInfo
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry as BlockingRetry
from redis.sentinel import MasterNotFoundError
from redis.sentinel import Sentinel as BlockingSentinel
from redis.sentinel import SentinelConnectionPool as BlockingSentinelPool

from service.core.settings.stores import Cluster, Sentinels, read_cluster, read_sentinels

NO_PRIMARY = (MasterNotFoundError, AsyncMasterNotFoundError)
"""What a connection raises when no sentinel, or node of a cluster, that answers names a living primary."""

_MAP = ("CLUSTER INFO", "CLUSTER SLOTS")
_DENIED = (AuthenticationError, NoPermissionError)
_AWAY = (RedisConnectionError, RedisTimeoutError, OSError)
_NO_NODE = "No node that answers knows a primary of the slot of this tenant"
_ANSWER_S = 1  # a sentinel that takes longer is passed over
_DRIVER = DriverInfo()  # redis-py reads its own metadata, a millisecond, for each connection that is not given it


class _UnixConnection(UnixDomainSocketConnection):
    """A blocking connection over a Unix socket, with the `port` that redis-py 7.2.0 (pinned by AFK) reads."""

    port = 0


def open_pool(url: str, **options: Any) -> ConnectionPool:
    """Return a pool of connections, with redis-py's `options`."""
    if (cluster := read_cluster(url)) is not None:
        store, ask = _read_options(cluster)
        return SentinelConnectionPool(cluster.tenant, _Nodes(cluster, ask), driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]
    sentinels = read_sentinels(url)
    if sentinels is None:
        return ConnectionPool.from_url(url, driver_info=_DRIVER, **options)
    store, ask = _read_options(sentinels)
    manager = Sentinel(sentinels.addresses, sentinel_kwargs={**ask, "retry": Retry(NoBackoff(), 0)})  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(sentinels.name, manager, driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]


def open_blocking_pool(url: str, **options: Any) -> BlockingPool:
    """Return a pool of blocking connections, with redis-py's `options`."""
    if (cluster := read_cluster(url)) is not None:
        store, ask = _read_options(cluster)
        nodes = _BlockingNodes(cluster, ask)
        return BlockingSentinelPool(cluster.tenant, nodes, driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]
    sentinels = read_sentinels(url)
    if sentinels is None:
        if url.startswith("unix://"):
            options["connection_class"] = _UnixConnection
        return BlockingPool.from_url(url, driver_info=_DRIVER, **options)
    store, ask = _read_options(sentinels)
    manager = BlockingSentinel(sentinels.addresses, sentinel_kwargs={**ask, "retry": BlockingRetry(NoBackoff(), 0)})  # type: ignore[no-untyped-call]
    return BlockingSentinelPool(sentinels.name, manager, driver_info=_DRIVER, **store, **options)  # type: ignore[no-untyped-call]


def _read_options(behind: Sentinels | Cluster) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the options of connections to the store, and of those that ask for it; both use TLS, or neither."""
    options = parse_url(behind.store_url)  # type: ignore[no-untyped-call]
    for name in ("host", "port"):
        options.pop(name, None)
    secure = {"ssl": True} if options.pop("connection_class", None) is not None else {}
    tls = {**secure, **{name: value for name, value in options.items() if name.startswith("ssl_")}}
    login = behind._asdict() if isinstance(behind, Sentinels) else options
    ask = {
        **tls,
        "username": login.get("username"),
        "password": login.get("password"),
        "socket_timeout": _ANSWER_S,
        "socket_connect_timeout": _ANSWER_S,
        "driver_info": _DRIVER,
    }
    return {**options, **secure}, ask


class _Nodes:
    """A cluster, asked as redis-py's pool asks sentinels: for the primary of the slot of a tenant."""

    def __init__(self, cluster: Cluster, ask: Mapping[str, Any]) -> None:
        self._addresses = list(cluster.addresses)
        self._ask = {**ask, "retry": Retry(NoBackoff(), 0)}

    async def discover_master(self, tenant: str) -> tuple[str, int]:
        for host, port in self._addresses[:]:
            try:
                async with AsyncRedis(host=host, port=port, **self._ask) as node:
                    state, slots = [await node.execute_command(words) for words in _MAP]  # type: ignore[no-untyped-call]
                if primary := _find_primary(state, slots, tenant, host):
                    return primary
            except _DENIED:
                raise
            except (ResponseError, *_AWAY):
                pass
            self._addresses.append(self._addresses.pop(0))  # asked last from now on
        raise AsyncMasterNotFoundError(_NO_NODE)


class _BlockingNodes:
    """The same with blocking connections."""

    def __init__(self, cluster: Cluster, ask: Mapping[str, Any]) -> None:
        self._addresses = list(cluster.addresses)
        self._ask = {**ask, "retry": BlockingRetry(NoBackoff(), 0)}

    def discover_master(self, tenant: str) -> tuple[str, int]:
        for host, port in self._addresses[:]:
            try:
                with BlockingRedis(host=host, port=port, **self._ask) as node:
                    state, slots = [node.execute_command(words) for words in _MAP]
                if primary := _find_primary(state, slots, tenant, host):
                    return primary
            except _DENIED:
                raise
            except (ResponseError, *_AWAY):
                pass
            self._addresses.append(self._addresses.pop(0))
        raise MasterNotFoundError(_NO_NODE)


def _find_primary(state: Any, slots: Any, tenant: str, asked: str) -> tuple[str, int] | None:
    """Return the address of the primary of a tenant's slot; None where the node lost the cluster or misses the slot."""
    if state["cluster_state"] != "ok":
        return None
    slot = key_slot(f"{{{tenant}}}".encode())
    return next((place for first, last, place in _list_ranges(slots, asked) if first <= slot <= last), None)


def _list_ranges(slots: Any, asked: str) -> Iterator[tuple[int, int, tuple[str, int]]]:
    """Yield each range of slots with the address of its primary; a node without a name is the one that was asked."""
    for first, last, (host, port, *_), *_ in slots:
        yield first, last, (host.decode() if host else asked, int(port))


async def list_primaries(url: str) -> list[str]:
    """Return the URLs of all primaries of a cluster; for another store its URL. Raises redis-py's errors."""
    cluster = read_cluster(url)
    if cluster is None:
        return [url]
    _, ask = _read_options(cluster)
    parts = urlsplit(cluster.store_url)
    login, at, _ = parts.netloc.rpartition("@")
    host, port = await _Nodes(cluster, ask).discover_master(cluster.tenant)
    async with AsyncRedis(host=host, port=port, **ask, retry=Retry(NoBackoff(), 0)) as node:
        slots = await node.execute_command(_MAP[1])  # type: ignore[no-untyped-call]
    places = sorted({place for _, _, place in _list_ranges(slots, host)})
    hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in places)
    return [urlunsplit(parts._replace(netloc=f"{login}{at}{host}")) for host in hosts]


async def describe_sources(url: str) -> str:
    """Return what each sentinel, or node of a cluster, of a URL says about the primary, for an operator."""
    if (cluster := read_cluster(url)) is not None:
        _, ask = _read_options(cluster)
        return "; ".join([f"{host}:{port} {await _describe_node(host, port, ask)}" for host, port in cluster.addresses])
    sentinels = read_sentinels(url)
    if sentinels is None:
        return ""
    _, ask = _read_options(sentinels)
    facts = []
    for host, port in sentinels.addresses:
        async with AsyncRedis(host=host, port=port, **ask, retry=Retry(NoBackoff(), 0)) as sentinel:
            facts.append(f"{host}:{port} {await _describe_sentinel(sentinel, sentinels.name)}")
    return "; ".join(facts)


async def _describe_node(host: str, port: int, ask: Mapping[str, Any]) -> str:
    async with AsyncRedis(host=host, port=port, **ask, retry=Retry(NoBackoff(), 0)) as node:
        try:
            state: Any = await node.execute_command(_MAP[0])  # type: ignore[no-untyped-call]
        except ResponseError as error:
            return f"is no node of a cluster, or refuses: {error}"
        except _AWAY as error:
            return f"does not answer: {str(error).rstrip('.')}"
    return "answers" if state["cluster_state"] == "ok" else "has lost the cluster, or a slot of it is without a primary"


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
