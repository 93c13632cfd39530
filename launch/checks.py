"""Checks for free ports, the store, and the programs.

`python -m launch.checks service` (or `worker`, `clock`) exits with 0 while that program of this container works.
"""

import http.client
import socket as sockets
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from launch import PortTaken
from sayso.core.records.freezes import ClockReading
from sayso.errors import Unavailable
from service.core.jobs import count_workers
from service.core.logs import start
from service.core.settings import EVERY_ADDRESS, Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect_blocking, describe_fault
from service.core.store.keys import TenantKeys

HEALTH_PATH = "/healthz"
TIMEOUT_S = 2
MAX_TICK_AGE_MS = 5_000
"""The clock writes a tick once a second."""

ONCE = Retry(NoBackoff(), 0)


def check_port(host: str, port: int) -> None:
    """Raise `PortTaken` if no program can listen on the port."""
    try:
        family, kind, protocol, _, address = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)[0]
        with sockets.socket(family, kind, protocol) as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise PortTaken(
            f"Cannot listen on {host}:{port}: {error.strerror}. Stop the program that uses it, or set SAYSO_PORT to a "
            "free port (the demo model uses the next one).",
            port=port,
        ) from None


def is_healthy(host: str, port: int) -> bool:
    """Return whether the service reports that it is healthy."""
    connection = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", HEALTH_PATH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def find_store_fault(url: str) -> str | None:
    """Return a sentence that says why the store is not ready, or None if it is."""
    try:
        with connect_blocking(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=ONCE) as client:
            client.ping()
    except RedisError as error:
        return describe_fault(url, error)
    return None


def is_clock_ticking(url: str, tenant: str = TENANT) -> bool:
    """Return whether a tenant's clock has ticked recently. An unreachable store counts as yes."""
    try:
        with connect_blocking(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=ONCE) as client:
            raw: Any = client.hget(TenantKeys(tenant).clock, "beat")
            seconds, _ = cast("tuple[int, int]", client.time())
    except RedisError:
        return True
    return raw is not None and abs(seconds * 1000 - ClockReading.model_validate_json(raw).at_ms) < MAX_TICK_AGE_MS


def is_worker_alive(url: str, tenant: str = TENANT, host: str | None = None) -> bool:
    """Return whether a worker of this host beat lately. An unreachable store counts as yes: workers wait for it."""
    try:
        return count_workers(url, tenant, host or sockets.gethostname()) > 0
    except Unavailable:
        return True


PROBES: Mapping[str, Callable[[Settings], bool]] = {
    "service": lambda settings: is_healthy(settings.host, settings.port),
    "worker": lambda settings: is_worker_alive(settings.jobs_url, settings.tenant),
    "clock": lambda settings: is_clock_ticking(settings.store_url, settings.tenant),
}


def main(settings: Settings) -> int:
    """Return 0 if the program that the command line names works, else 1."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in PROBES:
        print(f"Name the program to check: {', '.join(PROBES)}.", file=sys.stderr)
        return 2
    return 0 if PROBES[name](settings) else 1


if __name__ == "__main__":
    raise SystemExit(start(main, several=len(sys.argv) == 2 and sys.argv[1] == "service"))
