"""The saved state of a suspended run, sealed with a digest so that an altered state is never resumed."""

import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from sayso.core.canonical_json import TOP, JsonObject, Place, has_lone_surrogate, unique_pairs, write_path
from sayso.core.records.base import Immutable
from sayso.errors import InvalidInput, InvalidJson, TooLarge

MAX_STATE_BYTES = 8 * 1024 * 1024
_GZIP = 31  # zlib's `wbits` for a gzip header and the largest window


class StateRef(Immutable):
    """Encoding, size and SHA-256 of a saved state."""

    encoding: Literal["json", "json+gzip"] = "json"
    bytes: int
    digest: str


@dataclass(frozen=True)
class SealedState:
    """A state and the reference that verifies it."""

    ref: StateRef
    blob: bytes


def seal_state(raw: bytes) -> SealedState:
    """Return the JSON bytes `raw`, compressed from 2048 bytes on, with their reference."""
    if len(raw) > MAX_STATE_BYTES:
        raise TooLarge(f"The run's state is {len(raw)} bytes; the limit is {MAX_STATE_BYTES}. Trim its messages.")
    digest = sha256(raw).hexdigest()
    if len(raw) < 2048:
        return SealedState(StateRef(bytes=len(raw), digest=digest), raw)
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    blob = packer.compress(raw) + packer.flush()
    return SealedState(StateRef(encoding="json+gzip", bytes=len(raw), digest=digest), blob)


def open_state(ref: StateRef, blob: bytes) -> bytes:
    """Return the JSON bytes behind `ref`; raises `InvalidInput` when they do not match it."""
    try:
        packed = ref.encoding == "json+gzip"
        raw = zlib.decompressobj(wbits=_GZIP).decompress(blob, ref.bytes + 1) if packed else blob
    except zlib.error as error:
        problem = "The run's saved state cannot be decompressed; it was altered. The run cannot continue."
        raise InvalidInput(problem) from error
    if len(raw) != ref.bytes or sha256(raw).hexdigest() != ref.digest:
        raise InvalidInput("The run's saved state does not match its digest. The run cannot continue.")
    return raw


def write_state(value: JsonObject) -> bytes:
    """Return a framework's state as JSON bytes; raises `InvalidJson` with the path of a value that is not JSON."""
    check_state(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def read_state(raw: bytes) -> JsonObject:
    """Return the JSON object in `raw`; raises `InvalidJson` when it is not strict JSON."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=unique_pairs)
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidJson(f"The state is not readable JSON: {error}. Send an object as UTF-8 JSON.") from error
    except json.JSONDecodeError as error:
        problem = f"The state is not JSON: {error.msg} at line {error.lineno} column {error.colno}. Send an object."
        raise InvalidJson(problem) from error
    if not isinstance(value, dict):
        raise InvalidJson(f"The state is a {type(value).__name__}, not a JSON object. Send an object.")
    check_state(value)
    return value


def check_state(value: object) -> None:
    """Raise `InvalidJson` with the path of the first value that is not JSON, such as `$.messages[2].content`."""
    for path, fault in _find_faults(value):
        problem = f"The run's state cannot be saved: {path} {fault}. Keep only plain JSON values in the state."
        raise InvalidJson(problem, path=path)


def _find_faults(value: object) -> Iterator[tuple[str, str]]:
    stack: list[tuple[object, Place]] = [(value, TOP)]
    while stack:
        node, place = stack.pop()
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str) or has_lone_surrogate(key):
                    yield write_path(place), f"has the key {key!r}, which is not text"
            stack.extend((child, (place, key)) for key, child in reversed(node.items()))
        elif isinstance(node, list | tuple):
            stack.extend((child, (place, index)) for index, child in reversed(list(enumerate(node))))
        elif fault := _fault_of(node):
            yield write_path(place), fault


def _fault_of(node: object) -> str | None:
    if isinstance(node, str):
        return "holds half of a surrogate pair" if has_lone_surrogate(node) else None
    if isinstance(node, float):
        return None if math.isfinite(node) else "is not a finite number"
    if node is None or isinstance(node, bool | int):
        return None
    return f"is a {type(node).__name__}, which is not JSON"
