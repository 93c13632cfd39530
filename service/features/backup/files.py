"""The file of a backup: a header, then sealed frames, the last of them marked.

With a key, each frame is encrypted (AES-256-GCM, a key of its own for each file); without one it has a checksum. Both
cover the header, the number of the frame and the mark, so a file that was cut, joined or damaged is refused.
"""

import hmac
import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import ValidationError

from sayso.core.clock import new_secret
from sayso.core.key_files import SecretKey
from sayso.core.records.base import Immutable
from sayso.errors import InvalidInput

_MAGIC = b"sayso backup 1\n"
_LENGTH, _ENTRY = struct.Struct(">I"), struct.Struct(">IqI")
_FRAME_BYTES = 1 << 20
_REMOVED = 0xFFFFFFFF
SUFFIX = ".sayso"
_NAMED = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(\.\d+)?Z\.sayso")
_DAMAGED = "The backup {path} is damaged: {what}. Use another copy; nothing was restored."


class Entry(NamedTuple):
    """One key of the store: the time, ms, at which it expires, -1 for never; and its dump, None once it is removed.

    Later entries of a file replace earlier ones of the same key.
    """

    name: bytes
    expires_ms: int
    dump: bytes | None


class Header(Immutable):
    """What a backup is: the format of the store, when it began, and the id of its key; empty for one in clear."""

    format: str
    at_ms: int
    key: str = ""
    salt: str


def write_backup(path: Path, format_: str, at_ms: int, key: SecretKey | None, entries: Iterable[Entry]) -> Header:
    """Write a new file that its owner alone can read; it has its name once it is whole. Raises `InvalidInput`."""
    header = Header(format=format_, at_ms=at_ms, key=key.id if key else "", salt=new_secret())
    part = path.with_name(f"{path.name}.part")
    if path.exists():
        raise InvalidInput(f"{path} exists already. Name a new file.")
    try:
        part.unlink(missing_ok=True)  # of a backup that was cut off, or with another mode
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            _write_all(file, header, key, entries)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()  # it may have filled the disk
        raise InvalidInput(
            f"{part} cannot be written ({error.strerror}). Name a file in a folder of yours with enough space."
        ) from error
    return header


def _write_all(file: BinaryIO, header: Header, key: SecretKey | None, entries: Iterable[Entry]) -> None:
    raw = _MAGIC + header.model_dump_json().encode() + b"\n"
    file.write(raw)
    frames, seal = _pack(entries), _sealer(raw, header, key)
    number, held = 0, next(frames, b"")
    for number, frame in enumerate(frames, start=1):
        _write_frame(file, seal(number - 1, False, zlib.compress(held, 1)))
        held = frame
    _write_frame(file, seal(number, True, zlib.compress(held, 1)))


def list_old(path: Path, keep: int) -> list[Path]:
    """Return the backups beside this one that are named by their time, but for the latest `keep`."""
    named = sorted(file for file in path.parent.glob(f"*{SUFFIX}") if _NAMED.fullmatch(file.name))
    return named[: max(0, len(named) - keep)]


def read_header(path: Path) -> Header:
    """Return what the file says of itself; raises `InvalidInput`."""
    with _open(path) as file:
        return _read_header(path, file)[0]


def read_backup(path: Path, find_key: Callable[[str], SecretKey | None]) -> Iterator[Entry]:
    """Yield the entries of a whole file; raises `InvalidInput` for a missing key, and at the first damage."""
    with _open(path) as file:
        header, raw = _read_header(path, file)
        key = find_key(header.key) if header.key else None
        if header.key and key is None:
            raise InvalidInput(
                f"The backup {path} is encrypted with the key {header.key}, which the key file does not hold. Name the "
                "file that does with --key-file."
            )
        opens, number, last = _opener(raw, header, key), 0, False
        while not last:
            body = _read_frame(file)
            frame = opens(number, False, body)
            if frame is None:
                frame, last = opens(number, True, body), True
            if frame is None or (last and file.read(1)):
                raise InvalidInput(_DAMAGED.format(path=path, what=f"part {number + 1} is missing or altered"))
            yield from _unpack(zlib.decompress(frame))
            number += 1


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"The backup {path} cannot be read: {error.strerror}.") from error


def _read_header(path: Path, file: BinaryIO) -> tuple[Header, bytes]:
    magic, line = file.readline(100), file.readline(10_000)
    if magic != _MAGIC:
        raise InvalidInput(f"{path} is no backup that this version of Sayso reads.")
    try:
        return Header.model_validate_json(line), magic + line
    except ValidationError as error:
        raise InvalidInput(_DAMAGED.format(path=path, what="its header cannot be read")) from error


def _read_frame(file: BinaryIO) -> bytes:
    """Return the next frame; empty for one that is cut."""
    size = file.read(_LENGTH.size)
    length = _LENGTH.unpack(size)[0] if len(size) == _LENGTH.size else 0
    body = file.read(length)
    return body if len(body) == length else b""


def _write_frame(file: BinaryIO, body: bytes) -> None:
    file.write(_LENGTH.pack(len(body)) + body)


def _pack(entries: Iterable[Entry]) -> Iterator[bytes]:
    held = bytearray()
    for name, expires_ms, dump in entries:
        held += _ENTRY.pack(len(name), expires_ms, _REMOVED if dump is None else len(dump)) + name + (dump or b"")
        if len(held) >= _FRAME_BYTES:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _unpack(frame: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(frame):
        size, expires_ms, length = _ENTRY.unpack_from(frame, at)
        at += _ENTRY.size
        name, at = frame[at : at + size], at + size
        kept = 0 if length == _REMOVED else length
        yield Entry(name, expires_ms, None if length == _REMOVED else frame[at : at + kept])
        at += kept


_Seal = Callable[[int, bool, bytes], bytes]
_Open = Callable[[int, bool, bytes], bytes | None]


def _sealer(raw: bytes, header: Header, key: SecretKey | None) -> _Seal:
    if key is None:
        return lambda number, last, body: _sum(raw, number, last, body) + body
    cipher = _cipher(header, key)
    return lambda number, last, body: cipher.encrypt(_place(number, last), body, raw)


def _opener(raw: bytes, header: Header, key: SecretKey | None) -> _Open:
    def check(number: int, last: bool, body: bytes) -> bytes | None:
        return body[32:] if hmac.compare_digest(body[:32], _sum(raw, number, last, body[32:])) else None

    if key is None:
        return check
    cipher = _cipher(header, key)

    def decrypt(number: int, last: bool, body: bytes) -> bytes | None:
        try:
            return cipher.decrypt(_place(number, last), body, raw)
        except (InvalidTag, ValueError):
            return None

    return decrypt


def _cipher(header: Header, key: SecretKey) -> AESGCM:
    return AESGCM(key.derive(f"backup {json.dumps(header.salt)}"))


def _place(number: int, last: bool) -> bytes:
    return struct.pack(">QI", number, last)


def _sum(raw: bytes, number: int, last: bool, body: bytes) -> bytes:
    return sha256(raw + _place(number, last) + body).digest()
