"""Say what is exposed about the address of a store: who else could read along, or come in."""

import ipaddress
from urllib.parse import parse_qs, urlsplit


def find_exposure(url: str) -> str | None:
    """Return what the way to a store lacks where that is on another machine, or None."""
    parts = urlsplit(url)
    if parts.scheme == "unix" or is_loopback(parts.hostname or ""):
        return None
    lacks = []
    if not (parts.password or parse_qs(parts.query).get("password")):
        lacks.append("a password")
    if parts.scheme != "rediss":
        lacks.append("TLS (rediss://)")
    return " and ".join(lacks) or None


def is_loopback(host: str) -> bool:
    """Tell whether a host's name or address is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
