"""Segments of the archive: ended runs in one compressed file, signed and encrypted with the key file.

A segment is a line of JSON and a body. The line has a statement, with the SHA-256 of the body, and its signature. The
body is a line with a summary of each run, and a line for each run, all of it compressed, then encrypted.
"""

import hmac
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from sayso.core.key_files import SecretKey
from sayso.core.packages import VERSION
from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import RunStatus
from sayso.errors import Altered, Unreadable
from sayso.features.evidence.checkpoints import sign, write_json
from service.core.store.connection.sealing import Keyring, Sealer

_PURPOSE = "archived runs"
_KIND = "archive"


class Summary(Immutable):
    """What a list of archived runs says of one; `suspensions` are the ids of its records, the latest first."""

    id: str
    agent: str
    owner: str
    status: RunStatus
    started_ms: int
    ended_ms: int
    erased_ms: int | None = None
    suspensions: tuple[str, ...]


class ArchivedRun(Immutable):
    """A run as it was in the store, its records in clear, its state and files in base64."""

    summary: Summary
    records: tuple[str, ...]
    decided: Mapping[str, int] = {}
    trail: tuple[str, ...]
    external: tuple[str, ...] = ()
    external_seen: Mapping[str, str] = {}
    comments: tuple[str, ...] = ()
    comments_seen: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    file_contents: Mapping[str, str] = {}
    state: str = Field(default="", repr=False)


_SUMMARIES = TypeAdapter(list[Summary])


class Segment:
    """An opened segment, whose runs are parsed when they are read."""

    def __init__(self, name: str, body: bytes) -> None:
        lines = zlib.decompress(body).split(b"\n")
        self.name, self._lines = name, lines[1:]
        self.summaries = _SUMMARIES.validate_json(lines[0])
        if len(self.summaries) != len(self._lines):
            raise ValueError("it has not as many runs as it says")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {id_: place for place, run in enumerate(self.summaries) for id_ in (run.id, *run.suspensions)}

    def find(self, any_id: str) -> ArchivedRun | None:
        """Return the run with this id, or with a suspension of this id."""
        place = self._places.get(any_id)
        return ArchivedRun.model_validate_json(self._lines[place]) if place is not None else None

    def list_runs(self, without: Iterable[str] = ()) -> list[ArchivedRun]:
        """Return all runs, except some."""
        left_out = frozenset(without)
        pairs = zip(self.summaries, self._lines, strict=True)
        return [ArchivedRun.model_validate_json(line) for run, line in pairs if run.id not in left_out]


def write_segment(
    name: str, runs: Sequence[ArchivedRun], made_at_ms: int, sealer: Sealer, key: SecretKey | None
) -> bytes:
    """Return the bytes of a segment."""
    lines = [_SUMMARIES.dump_json([run.summary for run in runs])]
    lines += [run.model_dump_json(exclude_defaults=True).encode() for run in runs]
    body = sealer.seal_bytes(_PURPOSE, zlib.compress(b"\n".join(lines), 6), name)
    claims = {
        "at_ms": made_at_ms,
        "kind": _KIND,
        "name": name,
        "release": VERSION,
        "runs": len(runs),
        "tenant": sealer.tenant,
        "v": 1,
    }
    statement = write_json({**claims, "key": key.id if key else "", "sha256": sha256(body).hexdigest()})
    signature = sign(key, statement) if key else ""
    return write_json({"signature": signature, "statement": statement}).encode() + b"\n" + body


def open_segment(name: str, raw: bytes, sealer: Sealer, keyring: Keyring) -> Segment:
    """Return a segment after a check of its signature. Raises `Altered`, `Unreadable`."""
    head, _, body = raw.partition(b"\n")
    try:
        held = json.loads(head)
        claims = json.loads(held["statement"])
        known = claims["kind"], claims["name"], claims["tenant"], claims["sha256"]
        key_id, signature = str(claims["key"]), str(held["signature"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable("it does not begin like a segment") from error
    if known != (_KIND, name, sealer.tenant, sha256(body).hexdigest()):
        raise Altered("its statement is that of another segment")
    _verify(held["statement"], signature, key_id, keyring)
    try:
        return Segment(name, sealer.open_bytes(_PURPOSE, body, name))
    except (zlib.error, ValidationError, ValueError) as error:
        raise Unreadable(f"it cannot be unpacked: {error}") from error


def _verify(statement: str, signature: str, key_id: str, keyring: Keyring) -> None:
    if not key_id:
        return  # written without a key file; the digest in the store stands for it
    key = keyring.find(key_id)
    if key is None:
        raise Unreadable(f"it is signed with the key {key_id}, which SAYSO_KEY_FILE does not hold; put that key back")
    if not hmac.compare_digest(sign(key, statement), signature):
        raise Altered(f"its signature is not that of the key {key_id}")


class Filter(NamedTuple):
    """A Bloom filter of ids, of 12 bits each: it names one of about 300 absent ids as present."""

    bits: bytes

    @classmethod
    def of(cls, ids: Iterable[str]) -> "Filter":
        names = list(ids)
        size = max(8, (len(names) * 12 + 7) // 8)
        bits = bytearray(size)
        for place in chain.from_iterable(_list_places(name, size) for name in names):
            bits[place >> 3] |= 1 << (place & 7)
        return cls(bytes(bits))

    def may_hold(self, id_: str) -> bool:
        return all(self.bits[place >> 3] >> (place & 7) & 1 for place in _list_places(id_, len(self.bits)))


def _list_places(id_: str, size: int) -> list[int]:
    digest = sha256(id_.encode(errors="surrogatepass")).digest()
    return [int.from_bytes(digest[4 * part : 4 * part + 4]) % (size * 8) for part in range(8)]
