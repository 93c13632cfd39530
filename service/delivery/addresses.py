"""Checks of receiver addresses: only public https addresses, never the operator's own network."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from sayso.errors import InvalidInput

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


def check_url(url: str, *, loopback: bool = False) -> None:
    """Raise `UnsafeUrl` unless this is an https URL that may lead to a public address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UnsafeUrl(f"The URL is invalid: {error}. Use one such as https://agent.example.com/aap.") from None
    if len(url) > MAX_URL_CHARS or not _VISIBLE.fullmatch(url) or "\\" in url:
        raise UnsafeUrl(f"A URL is at most {MAX_URL_CHARS} visible ASCII characters, without backslashes.")
    if parts.scheme != "https" or not host:
        raise UnsafeUrl("The URL must begin with https:// and name a host.")
    if "@" in parts.netloc or "#" in url:
        raise UnsafeUrl("The URL must have no user name, no password and no fragment.")
    if (address := _parse_address(host)) is not None and not is_allowed(address, loopback=loopback):
        raise UnsafeUrl(f"{host} is not a public address. Use one that the internet can reach.")


def is_allowed(address: IPv4Address | IPv6Address, *, loopback: bool = False) -> bool:
    """Return whether an address is public, or local where `loopback` allows it."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
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
    return f"{parts.hostname}:{parts.port or 443}"


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
