"""Name the place that an address leads to, as limits count it."""

from urllib.parse import urlsplit


def place_of(url: str) -> str:
    """Return the host and the port."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 443}"
