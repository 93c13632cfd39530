"""Pack a record into few bytes and unpack it again: what waits for weeks should weigh little.

A record's field names weigh more than its facts. They stand in a dictionary that both sides know, so a packed record
holds little more than the arguments it is about. The first byte names the dictionary, or says that the record is not
packed at all: one that a worker takes up at once is written again before its size could matter.
"""

import zlib

from sayso.events import TrailHead
from sayso.suspensions import Status, SuspensionRecord

_WORDS = (
    b'"receipt":{"decided_at_ms":1,"leased_at_ms":1,"resumed_at_ms":1,"settled_at_ms":1,"redrives":1,"error":"'
    b'"journal":[{"item_id":"i1","call_id":"call_","index":0,"tool":"","idempotency_key":"sus_","idempotent":true,'
    b'"attempt":1,"holder":"","begun_at_ms":1}],"end":{"status":"completed","result":{"text":"","error":"'
    b'"outcome":{"verdict":"approved","verdict":"denied","args":{"value":"","message":"","by":{"id":"","kind":"human",'
    b'"channel":"dashboard"},"at_ms":1,"start_by_ms":1,"digest":"'
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
    b'"rule_version":"","reviewers":["","deadline_at_ms":17,"start_by_s":3600},"digest":""}],"look_at_ms":17'
)
_DICTIONARIES = {b"1": _WORDS}
"""Dictionaries ever used; a packed record names its own, so one is added and none is ever changed."""

_CURRENT = b"1"
_PLAIN = b"0"
_WINDOW_BITS, _MEMORY_LEVEL = -13, 5
"""A small window is enough for what is mostly short, and costs a fraction of the time to set up."""


_PACKER = zlib.compressobj(level=1, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL, zdict=_DICTIONARIES[_CURRENT])


def pack_record(record: SuspensionRecord, head: TrailHead, commit_id: str, *, small: bool = False) -> bytes:
    """Return the record as it is stored: its version, the head of its run's trail, the commit's id, and itself.

    `small` packs it even where it is soon written again.
    """
    place = f"{record.version}|{head.seq}|{head.hash}|{commit_id}|".encode()
    doc = record.model_dump_json(exclude_defaults=True).encode()
    if record.status in (Status.DECIDED, Status.RESUMING) and record.resume.mode == "worker" and not small:
        return place + _PLAIN + doc
    packer = _PACKER.copy()
    return place + _CURRENT + packer.compress(doc) + packer.flush()


def unpack_record(raw: bytes) -> tuple[SuspensionRecord, TrailHead, str]:
    """Return what `pack_record` packed; raises `ValueError` for anything else."""
    version, seq, hash_, commit_id, body = raw.split(b"|", 4)
    record = SuspensionRecord.model_validate_json(_unpack_body(body[:1], body[1:]))
    if record.version != int(version):
        raise ValueError(f"the record of {record.id} says version {record.version}, its place says {int(version)}")
    return record, TrailHead(seq=int(seq), hash=hash_.decode()), commit_id.decode()


def _unpack_body(name: bytes, body: bytes) -> bytes:
    if name == _PLAIN:
        return body
    words = _DICTIONARIES.get(name)
    if words is None:
        raise ValueError(f"nobody here has the dictionary {name!r} with which a record was packed")
    try:
        return zlib.decompressobj(wbits=-15, zdict=words).decompress(body)
    except zlib.error as error:
        raise ValueError(f"a packed record cannot be unpacked: {error}") from error
