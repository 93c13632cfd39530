"""Rules for the URLs of other programs."""

import ipaddress
import re
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


_MAX_URL_CHARS = 2_000
_HOST = re.compile(r"[A-Za-z0-9.-]+")


def is_plain_https(url: str) -> bool:
    """Tell whether a URL is https to a host in ASCII, without a user name, spaces or invisible characters."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    host = parts.netloc.partition(":")[0]
    return len(url) <= _MAX_URL_CHARS and is_plain and parts.scheme == "https" and _HOST.fullmatch(host) is not None


def is_loopback(host: str) -> bool:
    """Tell whether a host's name or address is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
