"""Connections to public addresses, and to the internal receivers that the operator names.

A name is resolved once, and the connection goes to the checked address. The address that it has reached is checked
again. The Host header and the TLS handshake keep the name, so the receiver's certificate must match it.
"""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpcore
import structlog

from service.delivery.addresses import UnsafeUrl, is_allowed
from service.settings.receivers import NO_RECEIVERS, InternalReceivers, unmap

_LOOKUPS = 32
_LOG = structlog.get_logger(__name__)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to public addresses and internal receivers, and to loopback addresses where allowed."""

    def __init__(
        self,
        *,
        loopback: bool = False,
        internal: InternalReceivers = NO_RECEIVERS,
        sockets: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._loopback, self._internal = loopback, internal
        # Slow name look-ups must not block the threads of the default executor.
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="names")
        self._sockets = sockets if sockets is not None else httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the interface's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses; raises `UnsafeUrl` if any of them is not allowed."""
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._resolve(host, port):
            try:
                stream = await self._sockets.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            async with AsyncExitStack() as closing:
                closing.push_async_callback(stream.aclose)
                self._check(host, ip_address(str(stream.get_extra_info("server_addr")[0]).partition("%")[0]), port)
                closing.pop_all()
            return stream
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raise `UnsafeUrl`."""
        raise UnsafeUrl("A receiver must be a network address.")

    def close(self) -> None:
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str, port: int) -> list[IPv4Address | IPv6Address]:
        try:
            entries = await asyncio.get_running_loop().run_in_executor(self._lookups, _resolve_host, host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        addresses = list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries))
        for address in addresses:
            self._check(host, address, port)
        return addresses

    def _check(self, host: str, address: IPv4Address | IPv6Address, port: int) -> None:
        """Raise `UnsafeUrl` for an address that is neither public nor that of an internal receiver."""
        address = unmap(address)
        if is_allowed(address, loopback=self._loopback) or self._internal.reaches(host, address, port):
            return
        _LOG.warning("receiver_not_public", host=host, address=str(address))
        raise UnsafeUrl(
            f"{host} does not resolve to a public address. Use one that the internet can reach, or let the operator "
            "name it in SAYSO_INTERNAL_RECEIVERS."
        )


def _resolve_host(host: str, port: int) -> list[Any]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
