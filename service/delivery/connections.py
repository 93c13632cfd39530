"""Connect to the very address that was checked: a name is resolved once, and what it led to is what is spoken to.

The name itself still stands in the Host header and in the TLS handshake, so the receiver's certificate must be its own.
"""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpcore
import structlog

from service.delivery.addresses import UnsafeUrl, may_reach

_LOOKUPS = 32
_LOG = structlog.get_logger(__name__)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to public addresses alone, and to this machine's own where that is allowed."""

    def __init__(self, *, loopback: bool = False) -> None:
        self._loopback = loopback
        # Names that take long to look up must not hold up whatever else this process does in threads.
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="names")
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the name is the interface's own
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses; raises `UnsafeUrl` when any of them is not to be reached."""
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._resolve(host, port):
            try:
                return await self._sockets.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a receiver is never a file."""
        raise UnsafeUrl("A receiver is reached over the network.")

    def close(self) -> None:
        """Begin no more look-ups, and wait for none."""
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str, port: int) -> list[IPv4Address | IPv6Address]:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._lookups, _look_up, host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        addresses = list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
        for address in addresses:
            if not may_reach(address, loopback=self._loopback):
                _LOG.warning("receiver_not_public", host=host, address=str(address))
                raise UnsafeUrl(f"{host} leads to no public address. Give one that the internet can reach.")
        return addresses


def _look_up(host: str, port: int) -> list[Any]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
