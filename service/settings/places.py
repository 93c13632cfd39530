"""Addresses and paths that follow from the settings."""

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

LONGEST_SOCKET_PATH_BYTES = 92
"""Unix socket paths end at 104 bytes on some systems and 108 on others, and the supervisor appends a process id while
it creates its own. A longer home gets a short folder instead."""

PORTS = {"http": 80, "https": 443}
"""The ports of addresses that name none."""

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


def reached_at(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on this host."""
    address = EVERY_ADDRESS.get(host, host)
    return f"[{address}]" if ":" in address else address


def store_url_at(socket: Path) -> str:
    """Return the URL of a store that listens on this socket."""
    return f"unix://{quote(str(socket))}?db=0"


def socket_path(home: Path, name: str = "store.sock") -> Path:
    """Return the path of a socket of this home: in it, or in a short folder where that path is too long."""
    inside = home / name
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH_BYTES:
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"sayso-{os.getuid()}-{digest}" / name
