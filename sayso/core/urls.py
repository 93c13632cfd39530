"""Rules for the URLs of other programs."""

import ipaddress
from urllib.parse import urlsplit

from sayso.errors import InvalidInput


def require_tls(url: str, *, plain_http: bool) -> None:
    """Raise `InvalidInput` unless `url` is https, or http to this machine; `plain_http` allows it to all machines."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise InvalidInput(f"{url!r} is not the URL of a server. Write it as https://host/path.")
    if parts.scheme == "http" and not plain_http and not is_loopback(parts.hostname):
        raise InvalidInput(f"Others can read the calls on the way to {parts.hostname}. Use https, or --plain-http.")


def is_loopback(host: str) -> bool:
    """Tell whether a host's name or address is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
