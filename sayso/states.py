"""Keep a paused run's own state as bytes whose digest is known, so that a foreign or altered state is never resumed."""

import zlib
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from sayso.errors import InvalidInput, TooLarge
from sayso.frozen import Frozen

MAX_STATE_BYTES = 8 * 1024 * 1024
_GZIP_FROM_BYTES = 2048
_GZIP = 31
"""zlib's word for a gzip wrapper around the largest window."""


class StateRef(Frozen):
    """What a record says of its run's state: how it is encoded, how large it is, and its SHA-256."""

    encoding: Literal["json", "json+gzip"] = "json"
    bytes: int
    digest: str


@dataclass(frozen=True)
class SealedState:
    """A state on its way to the store."""

    ref: StateRef
    blob: bytes


def seal_state(raw: bytes) -> SealedState:
    """Return the JSON bytes `raw`, gzipped where that pays, with the reference that vouches for them."""
    if len(raw) > MAX_STATE_BYTES:
        raise TooLarge(
            f"The run's state is {len(raw)} bytes; at most {MAX_STATE_BYTES} can be kept. Trim its messages."
        )
    digest = sha256(raw).hexdigest()
    if len(raw) < _GZIP_FROM_BYTES:
        return SealedState(StateRef(bytes=len(raw), digest=digest), raw)
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    blob = packer.compress(raw) + packer.flush()
    return SealedState(StateRef(encoding="json+gzip", bytes=len(raw), digest=digest), blob)


def open_state(ref: StateRef, blob: bytes) -> bytes:
    """Return the JSON bytes behind `ref`; raises `InvalidInput` when they are not the ones that were sealed."""
    try:
        packed = ref.encoding == "json+gzip"
        raw = zlib.decompressobj(wbits=_GZIP).decompress(blob, ref.bytes + 1) if packed else blob
    except zlib.error as error:
        raise InvalidInput("The run's saved state cannot be unpacked; it was altered. The run cannot go on.") from error
    if len(raw) != ref.bytes or sha256(raw).hexdigest() != ref.digest:
        raise InvalidInput("The run's saved state is not the one that was sealed. The run cannot go on.")
    return raw
