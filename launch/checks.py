"""Ask whether ports are free, the store answers and the service is healthy."""

import http.client
import socket as sockets
from typing import Any, NamedTuple, cast

from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.retry import Retry

from launch.errors import PortTaken
from sayso.transitions.clock_jumps import Beat
from service.auth.credentials import TENANT
from service.settings.places import EVERY_ADDRESS
from service.store.connection.connecting import connect_blocking
from service.store.connection.faults import describe_fault
from service.store.keys import TenantKeys

HEALTH_PATH = "/healthz"
TIMEOUT_S = 2
BEATEN_WITHIN_MS = 5_000
"""A clock keeps its beat once a second."""

ONCE = Retry(NoBackoff(), 0)


class StoreFault(NamedTuple):
    """Why a store does not serve; `passes` says whether it is still loading its data."""

    sentence: str
    passes: bool


def check_port(host: str, port: int) -> None:
    """Raise `PortTaken` when nothing could listen on the port, before anything is started."""
    try:
        family, kind, protocol, _, address = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)[0]
        with sockets.socket(family, kind, protocol) as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise PortTaken(
            f"Nothing can listen on {host}:{port}: {error.strerror}. Set SAYSO_PORT to a free port "
            "(the demo's model endpoint takes the one after it), or end what is there.",
            port=port,
        ) from None


def is_healthy(host: str, port: int) -> bool:
    """Tell whether the service answers that all is well."""
    connection = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", HEALTH_PATH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def find_store_fault(url: str) -> StoreFault | None:
    """Return why the store does not serve yet, or None when it has loaded its data and serves."""
    try:
        with connect_blocking(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=ONCE) as client:
            client.ping()
    except RedisError as error:
        return StoreFault(describe_fault(url, error), passes=isinstance(error, BusyLoadingError))
    return None


def clock_beats(url: str) -> bool:
    """Tell whether a clock has beaten within the last seconds; a store that is away is not the clock's fault."""
    try:
        with connect_blocking(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=ONCE) as client:
            kept: Any = client.hget(TenantKeys(TENANT).clock, "beat")
            seconds, _ = cast("tuple[int, int]", client.time())
    except RedisError:
        return True
    return kept is not None and abs(seconds * 1000 - Beat.model_validate_json(kept).at_ms) < BEATEN_WITHIN_MS
