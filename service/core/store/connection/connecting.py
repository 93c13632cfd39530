"""Connections to the store, without retries, its failures as `Unavailable`, and its checks at the start."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from functools import cached_property, partial
from types import TracebackType
from typing import Any

import structlog
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.core.clock import monotonic_ms
from sayso.errors import SaysoError, Unavailable
from service.core.metrics import note_refused_write
from service.core.settings.stores import hide_password, read_cluster
from service.core.store.connection.addresses import (
    NO_PRIMARY,
    describe_sources,
    find_sentinel_url,
    list_primaries,
    open_blocking_pool,
    open_pool,
)
from service.core.store.connection.macs import Macs
from service.core.store.keys import FORMAT, own_name

_LOG = structlog.get_logger(__name__)

LOST = (RedisConnectionError, RedisTimeoutError, OSError)  # the server may have run the command

WRITING = "#!lua\nreturn redis.call('TIME')"
"""A script that a store which accepts no writes refuses; it writes nothing."""

_UNKNOWN = (AuthenticationError, NoPermissionError)  # the user or the password
_REFUSED = {
    BusyLoadingError: "loading",
    ReadOnlyError: "readonly",
    OutOfMemoryError: "oom",
    MasterDownError: "masterdown",
    ClusterDownError: "clusterdown",
    TryAgainError: "tryagain",
    MovedError: "moved",
    AskError: "ask",
}
_ELSEWHERE = ("readonly", "moved")  # of a server that is no longer the primary, of the store or of the tenant's slot
_BUSY = (
    "OOM",
    "MISCONF",
    "LOADING",
    "READONLY",
    "NOREPLICAS",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "UNBLOCKED",
    "MOVED",
    "ASK",
)
"""The first words of an error of a store that takes writes again by itself, or once its operator has acted."""


def connect(url: str, *, blocking: bool = False, macs: Macs | None = None) -> "Client":
    """Return a client that raises `Unavailable` for errors of the store, and `Altered` for a value with a wrong MAC.

    A blocking one has no time limit.
    """
    pool = open_pool(
        url,
        max_connections=2048,
        socket_timeout=None if blocking else 5,
        socket_connect_timeout=5,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
    client = Client(connection_pool=pool)
    client.macs = macs or client.macs
    if (cluster := read_cluster(url)) is not None:
        client.tenant = cluster.tenant
    return client


def connect_blocking(url: str, **options: Any) -> BlockingRedis:
    """Return a blocking client; the caller closes it. With sentinels it finds the primary at each new connection."""
    return BlockingRedis.from_pool(open_blocking_pool(url, **options))


def text(raw: bytes | str) -> str:
    """Decode a name or id from the store."""
    return raw.decode() if isinstance(raw, bytes) else raw


def texts(raws: Iterable[Any]) -> list[str]:
    """Decode names or ids from the store."""
    return [text(raw) for raw in raws]


def as_ms(seconds: bytes | int, micros: bytes | int) -> int:
    """Return the server's time in ms from the reply to TIME."""
    return int(seconds) * 1000 + int(micros) // 1000


def is_refusal(error: BaseException) -> bool:
    """Return whether the store refuses writes, or everything, until its operator or its replicas change that."""
    return _find_reason(error) != ""


def is_demotion(error: BaseException) -> bool:
    """Return whether another server is the primary now, which only a new connection finds."""
    return _find_reason(error) in _ELSEWHERE


def _find_reason(error: BaseException) -> str:
    """Return why the store refuses commands, as its metric names it; nothing for another error."""
    for kind, reason in _REFUSED.items():
        if isinstance(error, kind):
            return reason
    # In a pipeline, redis-py puts its own words before the server's.
    said = str(error).rpartition("caused error: ")[2] if isinstance(error, ResponseError) else ""
    return next((busy.lower() for busy in _BUSY if said.startswith(busy)), "")


def translated() -> AbstractAsyncContextManager[None]:
    """Raise `Unavailable` for an error of the store."""
    return _TRANSLATION


class Translation(AbstractAsyncContextManager[None]):
    """The context manager of `translated`; one instance serves all calls.

    With a server that is no longer the primary, it calls `drop`, which closes the connections that are open.
    """

    def __init__(self, drop: Callable[[], Awaitable[None]] | None = None) -> None:
        self._drop = drop

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, NoScriptError):  # after which redis-py loads the script
            return
        said = str(error).rpartition("caused error: ")[2]  # redis-py's own words repeat arguments
        if reason := _find_reason(error):
            note_refused_write(reason)
            if self._drop is not None and reason in _ELSEWHERE:
                await self._drop()
            raise Unavailable(f"The store refuses this just now: {said}") from error
        if isinstance(error, LOST):
            raise Unavailable() from error
        if isinstance(error, ResponseError):
            _LOG.error("store_refused", error=said)  # unlike the others, it does not pass by itself
            raise Unavailable(f"The store refuses what Sayso asks of it: {said}. Tell the operator.") from error


_TRANSLATION = Translation()


class Client(Redis):
    """A client as `connect` makes it. In a cluster it serves one `tenant`."""

    macs = Macs()
    tenant: str | None = None

    @cached_property
    def translated(self) -> Translation:
        return Translation(partial(self.connection_pool.disconnect, inuse_connections=False))

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async with self.translated:
            reply = await super().execute_command(*self.macs.protect(args), **options)  # type: ignore[no-untyped-call]
        return self.macs.require(args, reply)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        pipeline = _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipeline.macs, pipeline.translated = self.macs, self.translated
        return pipeline


def macs_of(redis: Redis) -> Macs:
    """Return the MACs of a client's records; none of a client that `connect` did not make."""
    return redis.macs if isinstance(redis, Client) else Macs()


def name_shared(redis: Redis, name: str) -> str:
    """Return the name, in the client's store, of a key or channel outside of any tenant."""
    return own_name(name, redis.tenant) if isinstance(redis, Client) and redis.tenant else name


class _Pipeline(Pipeline):
    macs = Macs()
    translated = _TRANSLATION

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        commands = [args for args, _ in self.command_stack]
        async with self.translated:
            replies = await super().execute(raise_on_error)
        return [self.macs.verify(args, reply) for args, reply in zip(commands, replies, strict=True)]

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        async with self.translated:
            reply = await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]
        return self.macs.require(args, reply)

    def pipeline_execute_command(self, *args: Any, **options: Any) -> Any:
        return super().pipeline_execute_command(*self.macs.protect(args), **options)  # type: ignore[no-untyped-call]


_SENTINEL = "Set {} to {} with all sentinels, separated by commas, and the store's user and password."
_NODE = (
    "The store at {} is a node of a cluster. Set SAYSO_REDIS_URL to redis+cluster://host:port,host:port with several "
    "nodes, and SAYSO_QUEUE_URL to a small store that is none."
)
WAIT_S = 30.0
_AGAIN_S = 0.2


def describe_fault(url: str, error: BaseException) -> str:
    """Return a sentence that names the store's address and why it does not answer, or refuses writes."""
    cause = error.__cause__ or error
    if is_refusal(cause) and not isinstance(cause, BusyLoadingError):
        return f"The store at {hide_password(url)} refuses writes: {cause}."
    return f"The store at {hide_password(url)} does not answer: {_find_cause(error)}."


async def await_store(
    url: str,
    wait_s: float | None = WAIT_S,
    note: Callable[[str], None] | None = None,
    setting: str = "SAYSO_REDIS_URL",
) -> None:
    """Wait until the store takes writes; raises `Unavailable` after the limit, and at once for a refused password.

    `note` gets each reason to wait, as a sentence; without it they are logged. `setting` is the variable to correct.
    """
    until_ms = None if wait_s is None else monotonic_ms() + wait_s * 1000
    logged = ""
    async with connect(url) as redis:
        while (error := await _write(redis)) is not None:
            fault = describe_fault(url, error)
            causes = _causes(error)
            if isinstance(causes[0], ResponseError) and (right := await find_sentinel_url(url)) is not None:
                raise Unavailable(f"A sentinel answers at {hide_password(url)}. {_SENTINEL.format(setting, right)}")
            if any(isinstance(cause, _UNKNOWN) for cause in causes):
                raise Unavailable(f"{fault} Correct the user and the password in {setting}.")
            if until_ms is not None and monotonic_ms() >= until_ms:
                if any(isinstance(cause, NO_PRIMARY) for cause in causes):
                    fault += f" Of those asked, {await describe_sources(url)}."
                waited = f" Nothing changed within {wait_s:g} s." if wait_s else ""
                raise Unavailable(f"{fault}{waited} Start it, or correct {setting}.")
            if fault != logged:
                if note is not None:
                    note(fault)
                else:
                    _LOG.warning("store_away", reason=fault)
                logged = fault
            await asyncio.sleep(_AGAIN_S)
        if redis.tenant is None and await _is_node(redis):
            raise Unavailable(_NODE.format(hide_password(url)))
    if logged and note is None:
        _LOG.info("store_back", address=hide_password(url))


async def _is_node(redis: Redis) -> bool:
    """Return whether the server belongs to a cluster; one that refuses to say so is taken for none."""
    with suppress(Unavailable):
        state: Any = await redis.info("cluster")
        return bool(state.get("cluster_enabled"))
    return False


async def _write(redis: Client) -> Exception | None:
    try:
        keys = [name_shared(redis, FORMAT)] if redis.tenant else []
        await redis.eval(WRITING, len(keys), *keys)
    except Unavailable as error:
        return error
    return None


def _causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes[::-1]


_SENTENCES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (NO_PRIMARY, "no sentinel, or node of a cluster, that answers names a primary that lives"),
    (socket.gaierror, "nothing is known under this name"),
    (ConnectionRefusedError, "nothing listens there"),
    (FileNotFoundError, "there is no such socket"),
    ((TimeoutError, RedisTimeoutError), "it took longer than 5 s"),
)


def _find_cause(error: BaseException) -> str:
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, _UNKNOWN):
            return f"it refuses the user or the password ({str(cause).rstrip('.')})"
        for kinds, sentence in _SENTENCES:
            if isinstance(cause, kinds):
                return sentence
    return str(causes[0]).rstrip(".") or type(causes[0]).__name__


WANTED = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
"""Settings of the server with which a confirmed write survives any crash."""


UNCHECKED = "it does not tell how it is set up (CONFIG GET is refused)"
"""The weakness of a store that cannot be checked; its operator may state what it keeps."""


class WeakDurability(SaysoError):
    """The store may lose confirmed writes. See docs/operations.md."""


_MIN_REPLICAS = "min-replicas-to-write"


async def check_durability(
    url: str, *, allow_weak: bool, stated: bool = False, replicas: int = 0, wait_s: float = WAIT_S
) -> str | None:
    """Wait for the store; return the weak settings of its first weak primary, or None.

    Raises `WeakDurability` and `Unavailable`. With `replicas` it must refuse writes while it has fewer.

    A store that does not tell them is not weak where its operator has `stated` that it keeps what it confirmed.
    """
    await await_store(url, wait_s)
    async with translated():
        primaries = await list_primaries(url)
    faults = [(primary, await _find_weakness(primary, replicas)) for primary in primaries]
    weak = (
        f"{hide_password(primary)}: {fault}" if fault != UNCHECKED and len(faults) > 1 else fault
        for primary, fault in faults
        if fault is not None and not (stated and fault == UNCHECKED)
    )
    weakness = next(weak, None)
    if weakness is not None and not allow_weak:
        state = "or set SAYSO_STORE_DURABILITY=stated if its provider keeps every confirmed write, "
        raise WeakDurability(
            f"The store may forget what it confirmed: {weakness}. Set it up as docs/operations.md says, "
            f"{state if weakness == UNCHECKED else ''}or set SAYSO_ALLOW_WEAK_DURABILITY=true if that may happen here."
        )
    return weakness


async def _find_weakness(url: str, replicas: int) -> str | None:
    """Return the weak settings of one server, or None; raises `Unavailable`."""
    async with connect(url) as redis, redis.pipeline(transaction=False) as pipe:
        for name in (*WANTED, _MIN_REPLICAS):
            pipe.config_get(name)
        replies: list[Any] = await pipe.execute(raise_on_error=False)
    if any(isinstance(reply, LOST) for reply in replies):  # it began to load its data meanwhile
        raise Unavailable()
    if any(isinstance(reply, ResponseError) for reply in replies):
        return UNCHECKED
    options = {text(key): text(value) for reply in replies for key, value in reply.items()}
    wrong = [(name, value) for name, value in WANTED.items() if options.get(name) != value]
    if int(options.get(_MIN_REPLICAS, 0)) < replicas:
        wrong.append((_MIN_REPLICAS, str(replicas)))
    return "; ".join(f"{name} is {options.get(name, 'unknown')}, not {value}" for name, value in wrong) or None
