"""Tell public addresses from all others, so that nobody makes us knock on doors of the operator's own network."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from sayso.errors import InvalidInput

LONGEST_URL = 2_000

_V4_REFUSED = tuple(
    ip_network(one) for one in ("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10", "198.18.0.0/15", "240.0.0.0/4")
)
_V6_UNICAST = ip_network("2000::/3")
"""All that is public in IPv6 lies here; mapped, translated, local and multicast addresses do not."""

_V6_REFUSED = tuple(
    ip_network(one) for one in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)
_VISIBLE = re.compile(r"[!-~]+")


class UnsafeUrl(InvalidInput):
    """The address cannot be sent to; give a public https address without user name and fragment."""


def check_url(url: str, *, loopback: bool = False) -> None:
    """Raise `UnsafeUrl` unless this is an https address that may lead to a public place."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UnsafeUrl(f"This is no address: {error}. Give one such as https://agent.example.com/aap.") from None
    if len(url) > LONGEST_URL or not _VISIBLE.fullmatch(url) or "\\" in url:
        raise UnsafeUrl(f"An address is at most {LONGEST_URL} visible ASCII characters, without backslashes.")
    if parts.scheme != "https" or not host:
        raise UnsafeUrl("The address has to begin with https:// and name a host.")
    if "@" in parts.netloc or "#" in url:
        raise UnsafeUrl("The address must have no user name, no password and no fragment.")
    if (address := _read_address(host)) is not None and not may_reach(address, loopback=loopback):
        raise UnsafeUrl(f"{host} is not a public address. Give one that the internet can reach.")


def may_reach(address: IPv4Address | IPv6Address, *, loopback: bool = False) -> bool:
    """Say whether an address is public, or one of this very machine where that is allowed."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if loopback and address.is_loopback:
        return True
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4_REFUSED)
    return address in _V6_UNICAST and not any(address in network for network in _V6_REFUSED)


def _read_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
