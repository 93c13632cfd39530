"""Records as they are stored. Lists name unreadable ones and go on; nothing about them can be decided.

Field names, most of a record, are in a preset dictionary with which it is compressed. The first byte names it, or marks
a plain record. With a key file all this is encrypted, bound to the suspension and to what stands before the body.
"""

import asyncio
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from sayso.core.packages import VERSION
from sayso.core.records.events import TrailHead
from sayso.core.records.items import Item, digest_item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.errors import Altered, SaysoError, Unreadable
from service.core.store.connection.macs import ALTERED, REFUSED
from service.core.store.connection.sealing import Sealer

_WORDS = (
    b'"receipt":{"decided_at_ms":1,"leased_at_ms":1,"resumed_at_ms":1,"settled_at_ms":1,"redrives":1,"error":"'
    b'"journal":[{"item_id":"i1","call_id":"call_","index":0,"tool":"","idempotency_key":"sus_","idempotent":true,'
    b'"attempt":1,"holder":"","begun_at_ms":1}],"end":{"status":"completed","result":{"text":"","error":"'
    b'"outcome":{"verdict":"approved","verdict":"denied","args":{"value":"","message":"","by":{"id":"","kind":"human",'
    b'"channel":"web"},"at_ms":1,"start_by_ms":1,"digest":"'
    b'"decisions":[{"id":"dec_","suspension_id":"sus_","suspension_version":1,"item_id":"i1","action":"approve",'
    b'"args_digest":"","idempotency_key":"","permit":{"redeemed_at_ms":1,"attempt":1,"holder":"'
    b'"choices":["response_schema":{"type":"string"},"target_arg":"","on_deny":"fail","previous_id":"sus_",'
    b'"following_id":"sus_","lease":{"holder":"","attempt":1,"until_ms":1},'
    b'"state":{"encoding":"json+gzip","bytes":1,"digest":"'
    b'"quorum":{"approve":2,"deny":1},"no_self_approval":false,"remind_at_ms":[],"escalate":[{"after_s":1,"reviewers":["'
    b'"fallback":{"action":"deny","value":"","message":"","channels":["kind":"input","idempotent":true,'
    b'"allowed":["value","deny"],"request_id":"","tags":["context":{"status":"resuming","status":"resumed",'
    b'{"id":"sus_01a1","tenant":"default","version":1,"status":"decided","status":"pending","created_at_ms":17,'
    b'"updated_at_ms":17,"run":{"id":"run_01a1","agent":"","owner":"","thread_id":"","title":"","started_at_ms":17},'
    b'"step":1,"items":[{"item_id":"i1","call_id":"call_","index":1,"tool":{"name":"","args":{"amount":,'
    b'"definition":""},"prompt":{"title":"","body":"","reason":"","metadata":{},"terms":{"rule_id":"",'
    b'"rule_version":"","reviewers":["","deadline_at_ms":17,"start_by_s":3600},"digest":""}],"due_at_ms":17'
)
_DICTIONARIES = {b"1": _WORDS}  # all dictionaries; a packed record names its own, so none is ever changed
_CURRENT = b"1"
_OVER = (Status.RESUMED, Status.CANCELLED, Status.FAILED)
_PLAIN = b"0"
_SEALED, _OTHER = "suspension", "record"
_RELEASE = {"release"}
_WRITTEN = f',"release":"{VERSION}"}}'.encode()  # the end of each record, which its defaults leave out
_WINDOW_BITS, _MEMORY_LEVEL = -13, 5  # a small window fits short records, and takes a fraction of the time to set up


class Unpacked(NamedTuple):
    """A record with the head of its run's trail, the id of the commit that saved it, and its size as JSON, bytes."""

    record: SuspensionRecord
    head: TrailHead
    commit_id: str
    size: int


_PACKER = zlib.compressobj(level=1, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL, zdict=_DICTIONARIES[_CURRENT])


def pack_record(
    record: SuspensionRecord, head: TrailHead, commit_id: str, sealer: Sealer, *, small: bool = False
) -> bytes:
    """Return the stored form: version, head of the trail, commit id and body, which `small` always compresses."""
    header = f"{record.version}|{head.seq}|{head.hash}|{commit_id}|"
    doc = record.model_dump_json(exclude_defaults=True, exclude=_RELEASE).encode()[:-1] + _WRITTEN
    if record.status in (Status.DECIDED, Status.RESUMING) and record.resume.mode == "worker" and not small:
        body = _PLAIN + doc
    else:
        packer = _PACKER.copy()
        body = _CURRENT + packer.compress(doc) + packer.flush()
    return header.encode() + sealer.seal_bytes(_SEALED, body, record.id, header)


def open_record(raw: bytes, sealer: Sealer, suspension_id: str) -> bytes:
    """Return the stored form of a record with its body in clear; raises `Unreadable`."""
    *place, body = raw.split(b"|", 4)
    header = b"".join(part + b"|" for part in place)
    return header + sealer.open_bytes(_SEALED, body, suspension_id, header.decode(errors="replace"))


def unpack_record(raw: bytes) -> Unpacked:
    """Return a record in clear after a check of its items' digests; raises `Unreadable`."""
    if raw == REFUSED:
        raise Altered(ALTERED)
    try:
        version, seq, hash_, commit_id, body = raw.split(b"|", 4)
        place = int(version), TrailHead(seq=int(seq), hash=hash_.decode()), commit_id.decode()
    except ValueError as error:
        raise Unreadable("It does not begin like a record.") from error
    doc = unpack_body(body)
    try:
        record = SuspensionRecord.model_validate_json(doc)
    except ValidationError as error:
        raise Unreadable(f"It is not a record as this version writes it: {_describe_misfit(error, doc)}") from None
    if record.version != place[0]:
        raise Unreadable(f"The record says version {record.version}, and its header {place[0]}.")
    for item in record.items:
        _check_digests(record, item)
    return Unpacked(record, place[1], place[2], len(doc))


def _check_digests(record: SuspensionRecord, item: Item) -> None:
    if item.erasure is not None:
        # Its digest can no longer be computed: nothing of it may run.
        has_args = item.tool.args or (item.outcome is not None and item.outcome.args is not None)
        if has_args or record.erasure != item.erasure or record.status not in _OVER:
            raise Unreadable(f"Item {item.item_id} says that it was erased, and is not: it was altered in the store.")
        return
    outcome = item.outcome
    expected = [(item.tool.args, item.digest)]
    if outcome is not None and (outcome.args is not None or outcome.digest != item.digest):
        expected.append((item.tool.args if outcome.args is None else outcome.args, outcome.digest))
    for args, digest in expected:
        try:
            actual = digest_item(record.binding, item.item_id, item, args, item.terms)
        except SaysoError as error:
            raise Unreadable(f"Item {item.item_id} holds no plain JSON: {error.message}") from error
        if actual != digest:
            raise Unreadable(f"Item {item.item_id} is not what its digest was made of: it was altered in the store.")


def unpack_body(body: bytes) -> bytes:
    """Return the JSON of a stored record's body, unchecked; raises `Unreadable`."""
    name, body = body[:1], body[1:]
    if name == _PLAIN:
        return body
    words = _DICTIONARIES.get(name)
    if words is None:
        raise Unreadable(f"It is packed with a dictionary that this version does not have: {name!r}.")
    try:
        return zlib.decompressobj(wbits=-15, zdict=words).decompress(body)
    except zlib.error as error:
        raise Unreadable(f"It cannot be unpacked: {error}.") from error


_MOST_REMEMBERED = 1_000
_TURN_BYTES = 32_768  # so much JSON takes some milliseconds to read; then other tasks run

Model = TypeVar("Model", bound=BaseModel)
_LOG = structlog.get_logger(__name__)


class UnreadableRecord(NamedTuple):
    """A record that exists and is unreadable, and the reason; `run_id` where it was found through its run."""

    suspension_id: str
    reason: str
    run_id: str | None = None


def id_of(record: SuspensionRecord | UnreadableRecord) -> str:
    """Return the id of the suspension, readable or not."""
    return record.suspension_id if isinstance(record, UnreadableRecord) else record.id


def split_readable(
    records: Sequence[SuspensionRecord | UnreadableRecord],
) -> tuple[list[SuspensionRecord], list[UnreadableRecord]]:
    """Return the readable records, and the others."""
    readable = [record for record in records if isinstance(record, SuspensionRecord)]
    return readable, [record for record in records if isinstance(record, UnreadableRecord)]


def read_record(sealer: Sealer, suspension_id: str, raw: bytes) -> Unpacked:
    """Return the record with this id; raises `Unreadable`."""
    try:
        stored = unpack_record(open_record(raw, sealer, suspension_id))
        if (stored.record.tenant, stored.record.id) != (sealer.tenant, suspension_id):
            raise Unreadable("It is the record of another suspension.")
    except Unreadable as error:
        raise describe_unreadable(UnreadableRecord(suspension_id, error.message)) from error
    return stored


def describe_unreadable(record: UnreadableRecord) -> Unreadable:
    """Return the error for an unreadable record."""
    kind = Altered if record.reason == ALTERED else Unreadable
    return kind(
        f"The record {record.suspension_id} cannot be read: {record.reason} Nothing about it can be decided, and "
        "nothing of it starts. Ask the operator to run `sayso doctor`.",
        suspension_id=record.suspension_id,
        reason=record.reason,
    )


def name_stored(kind: str, raw: bytes | str) -> str:
    """Return the name of a stored record without an id that can be read: its kind, and a digest of its content."""
    return f"{kind} {sha256(raw if isinstance(raw, bytes) else raw.encode()).hexdigest()[:12]}"


def try_read(model: type[Model], raw: bytes | str) -> Model | None:
    """Return a stored record; None for one that this version cannot read, which allows nothing and is logged."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        _LOG.error("record_unreadable", kind=model.__name__, reason=_describe_misfit(error, raw))
        return None


def _describe_misfit(error: ValidationError, raw: bytes | str = b"") -> str:
    if raw == REFUSED:
        return ALTERED
    first = error.errors(include_url=False, include_input=False)[0]  # the input may hold a secret
    where = ".".join(map(str, first["loc"]))
    fault = f"{where}: {first['msg']}." if where else f"{first['msg']}."
    return f"{fault}{_name_release(raw)}" if first["type"] in _OF_OTHERS else fault


_OF_OTHERS = ("extra_forbidden", "enum", "literal_error", "union_tag_invalid")  # what later releases may add
_SHAPE = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,39}")


def _name_release(raw: bytes | str) -> str:
    """Return a sentence that names the release that wrote a record, if that is another one."""
    try:
        doc = json.loads(raw)
    except ValueError:
        return ""
    release = doc.get("release") if isinstance(doc, dict) else None
    if isinstance(release, str) and _SHAPE.fullmatch(release) and release != VERSION:
        return f" Sayso {release} wrote it, and this is Sayso {VERSION}."
    return " A later version of Sayso may have written it."


class Readings:
    """Reads records of one tenant, and keeps a list of the unreadable ones."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._unreadable: dict[str, UnreadableRecord] = {}

    def read(self, suspension_id: str, raw: bytes) -> Unpacked:
        """Return the record; raises `Unreadable`, and logs that once."""
        try:
            stored = read_record(self._sealer, suspension_id, raw)
        except Unreadable as error:
            self._note(UnreadableRecord(suspension_id, str(error.facts["reason"])))
            raise
        self.forget(suspension_id)
        return stored

    async def read_several(
        self, suspension_ids: Iterable[str], raws: Iterable[bytes | None]
    ) -> list[SuspensionRecord | UnreadableRecord]:
        """Return the records that exist, in the given order, and name unreadable ones; other tasks run in between."""
        records: list[SuspensionRecord | UnreadableRecord] = []
        unread = _TURN_BYTES
        for suspension_id, raw in zip(suspension_ids, raws, strict=True):
            if raw is None:
                self.forget(suspension_id)
                continue
            try:
                stored = self.read(suspension_id, raw)
                records.append(stored.record)
                unread -= stored.size
            except Unreadable as error:
                records.append(UnreadableRecord(suspension_id, str(error.facts["reason"])))
                unread -= len(raw)
            if unread <= 0:
                unread = _TURN_BYTES
                await asyncio.sleep(0)
        return records

    def seal_other(self, record: BaseModel, name: str) -> str:
        """Return a record of another kind as it is stored if it holds a secret. It is read under the same name."""
        return self._sealer.seal(_OTHER, record.model_dump_json(), name)

    def read_other(self, model: type[Model], raw: bytes | str, name: str) -> Model | None:
        """Return a stored record of another kind; None for an unreadable one, which is logged and listed once."""
        opened: bytes | str = raw
        try:
            opened = self._sealer.open(_OTHER, raw, name)
            record = model.model_validate_json(opened)
        except (Unreadable, ValidationError) as error:
            reason = error.message if isinstance(error, Unreadable) else _describe_misfit(error, opened)
            self._note(UnreadableRecord(name, reason))
            return None
        self.forget(name)
        return record

    def read_others(self, model: type[Model], named: Iterable[tuple[str, bytes | str]]) -> list[Model]:
        """Return those of several stored records, each after its name, that can be read."""
        return [record for record in (self.read_other(model, raw, name) for name, raw in named) if record is not None]

    def require_other(self, model: type[Model], raw: bytes | str, name: str) -> Model:
        """Return a stored record of another kind; raises `Unreadable`, so that nothing overwrites an unreadable one."""
        record = self.read_other(model, raw, name)
        if record is None:
            known = self._unreadable.get(name)
            reason = known.reason if known is not None else "a later version may have written it."
            kind = Altered if raw == REFUSED else Unreadable
            raise kind(
                f"The {name} cannot be read: {reason} It stays as it is. Ask the operator to run `sayso doctor`.",
                reason=reason,
            )
        return record

    def forget(self, suspension_id: str) -> None:
        self._unreadable.pop(suspension_id, None)

    def doubts(self, suspension_id: str) -> bool:
        return suspension_id in self._unreadable

    def list_unreadable(self) -> list[UnreadableRecord]:
        return list(self._unreadable.values())

    def _note(self, record: UnreadableRecord) -> None:
        known = self._unreadable.get(record.suspension_id)
        if known is None or known.reason != record.reason:
            _LOG.error("record_unreadable", suspension=record.suspension_id, reason=record.reason)
        if known is not None or len(self._unreadable) < _MOST_REMEMBERED:
            self._unreadable[record.suspension_id] = record
