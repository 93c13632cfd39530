"""Connections to the store, without retries, its failures as `Unavailable`, and its checks at the start."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
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
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
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
from service.core.settings.stores import hide_password
from service.core.store.connection.addresses import (
    NO_PRIMARY,
    describe_sentinels,
    find_sentinel_url,
    open_blocking_pool,
    open_pool,
)
from service.core.store.connection.macs import Macs

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
}
_BUSY = ("OOM", "MISCONF", "LOADING", "READONLY", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED")
"""The first words of an error of a store that takes writes again by itself, or once its operator has acted."""


def connect(url: str, *, blocking: bool = False, macs: Macs | None = None) -> "_Client":
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
    client = _Client(connection_pool=pool)
    client.macs = macs or client.macs
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
    """Return whether the server is a replica now, so that only a new connection finds the primary."""
    return _find_reason(error) == "readonly"


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

    With a server that is a replica now, it calls `drop`, which closes the connections that are open.
    """

    def __init__(self, drop: Callable[[], Awaitable[None]] | None = None) -> None:
        self._drop = drop

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, NoScriptError):  # after which redis-py loads the script
            return
        if reason := _find_reason(error):
            note_refused_write(reason)
            if self._drop is not None and reason == "readonly":
                await self._drop()
            raise Unavailable(f"The store refuses this just now: {error}") from error
        if isinstance(error, LOST):
            raise Unavailable() from error
        if isinstance(error, ResponseError):
            _LOG.error("store_refused", error=str(error))  # unlike the others, it does not pass by itself
            raise Unavailable(f"The store refuses what Sayso asks of it: {error}. Tell the operator.") from error


_TRANSLATION = Translation()


class _Client(Redis):
    macs = Macs()

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
    return redis.macs if isinstance(redis, _Client) else Macs()


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


_SENTINEL = "Set SAYSO_REDIS_URL to {} with all sentinels, separated by commas, and the store's user and password."
WAIT_S = 30.0
_AGAIN_S = 0.2


def describe_fault(url: str, error: BaseException) -> str:
    """Return a sentence that names the store's address and why it does not answer, or refuses writes."""
    cause = error.__cause__ or error
    if is_refusal(cause) and not isinstance(cause, BusyLoadingError):
        return f"The store at {hide_password(url)} refuses writes: {cause}."
    return f"The store at {hide_password(url)} does not answer: {_find_cause(error)}."


async def await_store(url: str, wait_s: float | None = WAIT_S, note: Callable[[str], None] | None = None) -> None:
    """Wait until the store takes writes; raises `Unavailable` after the limit, and at once for a refused password.

    `note` gets each reason to wait, as a sentence; without it they are logged.
    """
    until_ms = None if wait_s is None else monotonic_ms() + wait_s * 1000
    logged = ""
    async with connect(url) as redis:
        while (error := await _write(redis)) is not None:
            fault = describe_fault(url, error)
            causes = _causes(error)
            if isinstance(causes[0], ResponseError) and (right := await find_sentinel_url(url)) is not None:
                raise Unavailable(f"A sentinel answers at {hide_password(url)}. {_SENTINEL.format(right)}")
            if any(isinstance(cause, _UNKNOWN) for cause in causes):
                raise Unavailable(f"{fault} Correct the user and the password in SAYSO_REDIS_URL.")
            if until_ms is not None and monotonic_ms() >= until_ms:
                if any(isinstance(cause, NO_PRIMARY) for cause in causes):
                    fault += f" Of the sentinels, {await describe_sentinels(url)}."
                raise Unavailable(f"{fault} Nothing changed within {wait_s:g} s. Start it, or correct SAYSO_REDIS_URL.")
            if fault != logged:
                if note is not None:
                    note(fault)
                else:
                    _LOG.warning("store_away", reason=fault)
                logged = fault
            await asyncio.sleep(_AGAIN_S)
    if logged and note is None:
        _LOG.info("store_back", address=hide_password(url))


async def _write(redis: Redis) -> Exception | None:
    try:
        await redis.eval(WRITING, 0)
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
    (NO_PRIMARY, "no sentinel that answers names a primary that lives"),
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
    """Wait for the store; return its weak settings, or None. Raises `WeakDurability` and `Unavailable`.

    With `replicas` it must refuse writes while it has fewer.

    A store that does not tell them is not weak where its operator has `stated` that it keeps what it confirmed.
    """
    await await_store(url, wait_s)
    async with connect(url) as redis, redis.pipeline(transaction=False) as pipe:
        for name in (*WANTED, _MIN_REPLICAS):
            pipe.config_get(name)
        replies: list[Any] = await pipe.execute(raise_on_error=False)
    if any(isinstance(reply, LOST) for reply in replies):  # it began to load its data meanwhile
        raise Unavailable()
    if any(isinstance(reply, ResponseError) for reply in replies):
        weakness = None if stated else UNCHECKED
    else:
        options = {text(key): text(value) for reply in replies for key, value in reply.items()}
        wrong = [(name, value) for name, value in WANTED.items() if options.get(name) != value]
        if int(options.get(_MIN_REPLICAS, 0)) < replicas:
            wrong.append((_MIN_REPLICAS, str(replicas)))
        weak = (f"{name} is {options.get(name, 'unknown')}, not {value}" for name, value in wrong)
        weakness = "; ".join(weak) or None
    if weakness is not None and not allow_weak:
        state = "or set SAYSO_STORE_DURABILITY=stated if its provider keeps every confirmed write, "
        raise WeakDurability(
            f"The store may forget what it confirmed: {weakness}. Set it up as docs/operations.md says, "
            f"{state if weakness == UNCHECKED else ''}or set SAYSO_ALLOW_WEAK_DURABILITY=true if that may happen here."
        )
    return weakness
