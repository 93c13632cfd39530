"""Key files: secrets outside of the store, one a line after its id. The first is current; the others still verify."""

import base64
import hmac
import os
import re
from pathlib import Path
from typing import NamedTuple

from sayso.core.clock import new_secret
from sayso.errors import InvalidInput

_LINE = re.compile(r"(k[0-9a-f]{8}) ([A-Za-z0-9_-]{43}=)")


class SecretKey(NamedTuple):
    """A secret and its id."""

    id: str
    secret: bytes

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes for one purpose: HKDF-Expand of RFC 5869 with SHA-256."""
        return hmac.digest(self.secret, f"sayso {purpose}".encode() + b"\x01", "sha256")


def make_line() -> str:
    """Return the line of a new random key."""
    return f"k{new_secret()[:8]} {base64.urlsafe_b64encode(bytes.fromhex(new_secret())).decode()}\n"


def create_key_file(path: Path) -> None:
    """Write a new key file that its owner alone can read. Raises `InvalidInput` where one is."""
    try:
        _write(path, make_line())
    except FileExistsError:
        raise InvalidInput(f"{path} exists already. Add a key to it with `sayso keyfile rotate {path}`.") from None


def rotate_key_file(path: Path) -> None:
    """Put a new key first; the earlier ones stay, for what they signed."""
    read_key_file(path)
    fresh = path.with_name(f"{path.name}.{new_secret()[:8]}")
    _write(fresh, make_line() + path.read_text(encoding="ascii"))
    fresh.replace(path)


def read_key_file(path: Path) -> tuple[SecretKey, ...]:
    """Return the keys of a file, the current one first. Raises `InvalidInput`, also where others can read the file."""
    try:
        status = path.stat()
        lines = [line for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The key file cannot be read: {error}. Make one with `sayso keyfile new`.") from error
    # The superuser gives secrets of Kubernetes and credentials of systemd to a group of the one program.
    mode, mounted = status.st_mode & 0o777, status.st_uid == 0 and os.geteuid() != 0
    if mode & (0o037 if mounted else 0o077):
        raise InvalidInput(f"Others can read or write the key file {path}: its mode is {mode:o}. Set 600.")
    keys = []
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise InvalidInput(f"Line {number} of the key file {path} is no key. Restore the file from a backup.")
        keys.append(SecretKey(match[1], base64.urlsafe_b64decode(match[2])))
    if not keys:
        raise InvalidInput(f"The key file {path} is empty. Make one with `sayso keyfile new`.")
    if len({key.id for key in keys}) < len(keys):
        raise InvalidInput(f"The key file {path} has two keys with the same id. Remove one of them.")
    return tuple(keys)


def _write(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
