"""The address of a store, and why it does not answer."""

import asyncio
import socket
from urllib.parse import urlsplit

import structlog
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso.core.clock import monotonic_ms
from sayso.errors import Unavailable
from service.store.connection.connecting import WRITING, connect, is_refusal, translated

WAIT_S = 30.0
_AGAIN_S = 0.2

_LOG = structlog.get_logger(__name__)


def show_address(url: str) -> str:
    """Return a store's URL without its password."""
    parts = urlsplit(url)
    return url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2], 1) if parts.netloc else url


def describe_fault(url: str, error: BaseException) -> str:
    """Return a sentence that names the store's address and why it does not answer, or refuses writes."""
    cause = error.__cause__ or error
    if is_refusal(cause) and not isinstance(cause, BusyLoadingError):
        return f"The store at {show_address(url)} refuses writes: {cause}."
    return f"The store at {show_address(url)} does not answer: {_find_cause(error)}."


async def await_store(url: str, wait_s: float | None = WAIT_S) -> None:
    """Wait until the store takes writes; raises `Unavailable` after the limit, and at once for a refused password."""
    until_ms = None if wait_s is None else monotonic_ms() + wait_s * 1000
    logged = ""
    async with connect(url) as redis:
        while (error := await _write(redis)) is not None:
            fault = describe_fault(url, error)
            if is_refused(error):
                raise Unavailable(f"{fault} Correct the user and the password in SAYSO_REDIS_URL.")
            if until_ms is not None and monotonic_ms() >= until_ms:
                raise Unavailable(f"{fault} Nothing changed within {wait_s:g} s. Start it, or correct SAYSO_REDIS_URL.")
            if fault != logged:
                _LOG.warning("store_away", reason=fault)
                logged = fault
            await asyncio.sleep(_AGAIN_S)
    if logged:
        _LOG.info("store_back", address=show_address(url))


def is_refused(error: BaseException) -> bool:
    """Return whether the store refuses the user or the password."""
    return any(isinstance(cause, AuthenticationError | NoPermissionError) for cause in _causes(error))


async def _write(redis: Redis) -> Exception | None:
    try:
        async with translated():
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


def _find_cause(error: BaseException) -> str:
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, AuthenticationError | NoPermissionError):
            return f"it refuses the user or the password ({str(cause).rstrip('.')})"
        if isinstance(cause, socket.gaierror):
            return "nothing is known under this name"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there"
        if isinstance(cause, FileNotFoundError):
            return "there is no such socket"
        if isinstance(cause, TimeoutError | RedisTimeoutError):
            return "it took longer than 5 s"
    return str(causes[0]).rstrip(".") or type(causes[0]).__name__
