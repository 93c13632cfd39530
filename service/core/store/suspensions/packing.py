"""Compressed records.

Field names, most of a record, are in a preset dictionary. The first byte names it, or marks a plain record: one that a
worker leases at once is soon written again.
"""

import zlib
from typing import NamedTuple

from pydantic import ValidationError

from sayso.core.records.events import TrailHead
from sayso.core.records.items import Item, digest_item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.errors import SaysoError, Unreadable

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
_WINDOW_BITS, _MEMORY_LEVEL = -13, 5  # a small window fits short records, and takes a fraction of the time to set up


class Unpacked(NamedTuple):
    """A record with the head of its run's trail, the id of the commit that saved it, and its size as JSON, bytes."""

    record: SuspensionRecord
    head: TrailHead
    commit_id: str
    size: int


_PACKER = zlib.compressobj(level=1, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL, zdict=_DICTIONARIES[_CURRENT])


def pack_record(record: SuspensionRecord, head: TrailHead, commit_id: str, *, small: bool = False) -> bytes:
    """Return the stored form: version, head of the trail, commit id and body, which `small` always compresses."""
    header = f"{record.version}|{head.seq}|{head.hash}|{commit_id}|".encode()
    doc = record.model_dump_json(exclude_defaults=True).encode()
    if record.status in (Status.DECIDED, Status.RESUMING) and record.resume.mode == "worker" and not small:
        return header + _PLAIN + doc
    packer = _PACKER.copy()
    return header + _CURRENT + packer.compress(doc) + packer.flush()


def unpack_record(raw: bytes) -> Unpacked:
    """Return the record after a check of its items' digests; raises `Unreadable`."""
    try:
        version, seq, hash_, commit_id, body = raw.split(b"|", 4)
        place = int(version), TrailHead(seq=int(seq), hash=hash_.decode()), commit_id.decode()
    except ValueError as error:
        raise Unreadable("It does not begin like a record.") from error
    doc = unpack_body(body)
    try:
        record = SuspensionRecord.model_validate_json(doc)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]  # the input may hold a secret
        where = ".".join(map(str, fault["loc"])) + ": " if fault["loc"] else ""
        later = " A later version of Sayso may have written it." if fault["type"] == "extra_forbidden" else ""
        raise Unreadable(f"It is not a record as this version writes it: {where}{fault['msg']}.{later}") from None
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
            actual = digest_item(record.binding, item.item_id, item.tool, args, item.target_arg, item.terms)
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
