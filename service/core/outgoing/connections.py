"""Connections to public addresses, and to the internal receivers that the operator names.

A name is resolved once, and the connection goes to the checked address. The address that it has reached is checked
again. The Host header and the TLS handshake keep the name, so the receiver's certificate must match it.
"""

import asyncio
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpcore
import structlog

from sayso.errors import InvalidInput
from service.core.settings import PORTS
from service.core.settings.receivers import NO_RECEIVERS, InternalReceivers, read_address, unmap

MAX_URL_CHARS = 2_000

_V4_REFUSED = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10", "198.18.0.0/15", "240.0.0.0/4"))
)
_V6_PUBLIC = ip_network("2000::/3")  # all public unicast; mapped, translated, local and multicast addresses lie outside
_V6_REFUSED = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")))
_VISIBLE = re.compile(r"[!-~]+")


class UnsafeUrl(InvalidInput):
    """This URL is not allowed. Use a public https URL without user name and fragment."""


_NAME_IT = "or let the operator name it in SAYSO_INTERNAL_RECEIVERS"


def check_url(url: str, *, loopback: bool = False, internal: InternalReceivers = NO_RECEIVERS) -> None:
    """Raise `UnsafeUrl` unless this is an https URL that may lead to a public address, or leads to a named receiver."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UnsafeUrl(f"The URL is invalid: {error}. Use one such as https://agent.example.com/aap.") from None
    if len(url) > MAX_URL_CHARS or not _VISIBLE.fullmatch(url) or "\\" in url:
        raise UnsafeUrl(f"A URL is at most {MAX_URL_CHARS} visible ASCII characters, without backslashes.")
    if parts.scheme not in PORTS or not host:
        raise UnsafeUrl("The URL must begin with https:// and name a host.")
    if "@" in parts.netloc or "#" in url:
        raise UnsafeUrl("The URL must have no user name, no password and no fragment.")
    if internal.names(host, port or PORTS[parts.scheme]):
        return
    if parts.scheme == "http":
        raise UnsafeUrl(f"The URL must begin with https://. Use https, {_NAME_IT}.")
    if (address := read_address(host)) is not None and not is_allowed(address, loopback=loopback):
        raise UnsafeUrl(f"{host} is not a public address. Use one that the internet can reach, {_NAME_IT}.")


def is_allowed(address: IPv4Address | IPv6Address, *, loopback: bool = False) -> bool:
    """Return whether an address is public, or local where `loopback` allows it."""
    address = unmap(address)
    if loopback and address.is_loopback:
        return True
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4_REFUSED)
    return address in _V6_PUBLIC and not any(address in network for network in _V6_REFUSED)


def host_and_port(url: str) -> str:
    """Return the receiver of a URL as rate limits count it."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}"


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
        raise UnsafeUrl("A receiver must be a network address.")

    def close(self) -> None:
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str, port: int) -> list[IPv4Address | IPv6Address]:
        try:
            look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
            entries = await asyncio.get_running_loop().run_in_executor(self._lookups, look_up)
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
