"""Checks of receiver addresses: public ones over https, and what the operator names of the own network."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import urlsplit

from sayso.errors import InvalidInput
from service.settings.places import PORTS
from service.settings.receivers import NO_RECEIVERS, InternalReceivers, read_address, unmap

MAX_URL_CHARS = 2_000

_V4_REFUSED = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10", "198.18.0.0/15", "240.0.0.0/4"))
)
_V6_PUBLIC = ip_network("2000::/3")
"""All public unicast; mapped, translated, local and multicast addresses lie outside."""

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
