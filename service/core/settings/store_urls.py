"""Checks of the URL of a store, and who else could read along on the way to it."""

import ipaddress
import re
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlsplit

STORE_SCHEMES = ("redis", "rediss", "unix")
STORE_OPTIONS = ("db", "username", "password", "protocol", "client_name")


def check_store_url(url: str) -> None:
    """Raise `ValueError` for a URL that names no store, or has a part that the client would overlook."""
    parts = urlsplit(url)
    if parts.scheme not in STORE_SCHEMES:
        raise ValueError("write redis://host:port/db, rediss://host:port/db or unix:///path/to/socket?db=0")
    if not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise ValueError("the URL names no server; write redis://host:port/db or unix:///path/to/socket?db=0")
    check_port(parts)
    # What the client would overlook, and then use another database, or only trip over when it connects.
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    databases = [options.get("db"), parts.path.strip("/") if parts.scheme != "unix" else None]
    if not all(re.fullmatch(r"[0-9]+", database) for database in databases if database):
        raise ValueError("the database is no number; write redis://host:port/db or unix:///path/to/socket?db=0")
    for name in options:
        if name not in STORE_OPTIONS and not name.startswith("ssl_"):
            raise ValueError(f"'{name}' is no option of a store; there are {', '.join(STORE_OPTIONS)} and ssl_…")


def check_port(parts: SplitResult) -> None:
    """Raise `ValueError` for a port that is no number from 0 to 65535."""
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("the port is no number from 0 to 65535; correct it") from None


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
