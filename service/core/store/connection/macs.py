"""MACs of stored records: under a key outside of the store, a writer to the store alone forges nothing.

Every value of a record ends with a line of the id of a key and an HMAC-SHA256 over the record's kind, its place and its
content. Commands add and check it where they leave and enter the process, so no reader or writer can forget to.
"""

import base64
import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from sayso.core.key_files import SecretKey, read_key_file
from sayso.errors import Altered, InvalidInput
from service.core.metrics import note_refused_record

_REASONS = {
    "an index: what reads it takes ids only, and checks their records": """
        schedule inbox open open-of decided cards deliveries lane failures learning lessons runs runs-of owners trails
        erased api-keys rule-versions replays asked-by second-look groups-of contacts-of sessions-of provider-sessions
        grants-of mandates-of bucket buckets texts directory-names last-approval near-denials announcements""",
    "a count, or a mark of processes": """
        pace pace-of counter thread thread-tools grant-uses grant-trials rule-hits starts used refusals figures drilled
        recent facts file-bytes file-shares attempts unchecked checking checkpoint-of checkpoint-sinks clock settings
        rules waiting rush lease card-claim presence retained next-drill logout-token format""",
    "copies of records, with the MACs of these": "ready handed",
    "content whose digest a record has, or that is signed": "state file-contents checkpoints",
    "appended by a script, or removed by content": """
        external external-seen comments comments-seen files rule-changes denials precedents""",
}
PLAIN = {kind: why for why, kinds in _REASONS.items() for kind in kinds.split()}
"""The kinds of keys whose values carry no MAC, and why."""

_LENGTH = 54  # of a MAC: a line break, the id of a key, a colon and 32 bytes in base64 without padding
_MOST_LOGGED = 1_000
_LOG = structlog.get_logger(__name__)

REFUSED = b"\x00refused"
"""Stands for a value whose MAC is wrong, among several that one command read."""

ALTERED = "its MAC is missing or wrong, so another program than this desk wrote it."

_ONE = ("GET", "GETDEL", "HGET")  # commands that read one value
_FIRST = {"SET": 2, "LSET": 3}  # commands that write one value, and its place
_REST = ("RPUSH", "LPUSH")


class Macs:
    """The keys of one process: the first adds MACs, and each checks its own. Without a key file nothing has any."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._keys: tuple[SecretKey, ...] = read_key_file(path) if path is not None else ()
        self._derived: dict[tuple[str, str], bytes] = {}
        self._logged: set[tuple[str, str]] = set()
        self._unknown: set[str] = set()

    @property
    def active(self) -> bool:
        return bool(self._keys)

    def add(self, key: str, value: Any, field: Any = "") -> Any:
        """Return a value as it is stored under this key, in this field."""
        kind = find_kind(key)
        if not self._keys or kind in PLAIN:
            return value
        body, key_id = _encode(value), self._keys[0].id
        return body + self._compute(key_id, kind, _place(key, field), body)

    def check(self, key: str, raw: Any, field: Any = "") -> Any:
        """Return a stored value without its MAC; `REFUSED` where that is wrong, which is logged and counted."""
        if raw is None or not self._keys:
            return raw
        kind = find_kind(key)
        if kind in PLAIN:
            return raw
        stored = _encode(raw)
        body, mac = stored[:-_LENGTH], stored[-_LENGTH:]
        key_id = mac[1:10].decode("ascii", "replace")
        if self._knows(key_id) and hmac.compare_digest(mac, self._compute(key_id, kind, _place(key, field), body)):
            return body
        note_refused_record()
        named = key, _encode(field).decode(errors="replace")
        if named not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(named)
            _LOG.error("record_altered", key=key, field=named[1], reason=ALTERED)
        return REFUSED

    def protect(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return a command with MACs in what it writes."""
        if not self._keys or len(args) < 3:
            return args
        command, key = args[0], args[1]
        if command in ("HSET", "HSETNX"):
            pairs = zip(args[2::2], args[3::2], strict=True)
            return (*args[:2], *(part for field, value in pairs for part in (field, self.add(key, value, field))))
        first = _FIRST.get(command)
        if first is not None:
            return (*args[:first], self.add(key, args[first]), *args[first + 1 :])
        return (*args[:2], *(self.add(key, value) for value in args[2:])) if command in _REST else args

    def verify(self, args: Sequence[Any], reply: Any) -> Any:
        """Return the reply to a command without MACs, with `REFUSED` in place of wrong ones."""
        if not self._keys or not reply or isinstance(reply, Exception):
            return reply
        command, *names = args
        verified = reply
        if command in _ONE:
            verified = self.check(names[0], reply, *names[1:2])
        elif command == "MGET":
            verified = [self.check(key, raw) for key, raw in zip(names, reply, strict=True)]
        elif command == "HMGET":
            verified = [self.check(names[0], raw, field) for field, raw in zip(names[1:], reply, strict=True)]
        elif command == "HGETALL":
            verified = {field: self.check(names[0], raw, field) for field, raw in reply.items()}
        elif command == "LRANGE":
            verified = [self.check(names[0], raw) for raw in reply]
        elif command == "LINDEX":
            verified = self.check(names[0], reply)
        return verified

    def require(self, args: Sequence[Any], reply: Any) -> Any:
        """Return the reply to a command as `verify` does; raises `Altered` where it read one value."""
        verified = self.verify(args, reply)
        if verified == REFUSED and args[0] in _ONE:
            raise describe_altered(*args[1:3])
        return verified

    def _knows(self, key_id: str) -> bool:
        """Return whether the file has this key; it is read again for another one, so a rotation needs no restart."""
        if any(key.id == key_id for key in self._keys):
            return True
        if self._path is None or key_id in self._unknown:
            return False
        try:
            self._keys = read_key_file(self._path)
        except InvalidInput as error:
            _LOG.error("key_file_unreadable", reason=error.message)
        self._unknown.add(key_id)
        return any(key.id == key_id for key in self._keys)

    def _compute(self, key_id: str, kind: str, place: bytes, body: bytes) -> bytes:
        derived = self._derived.get((key_id, kind))
        if derived is None:
            secret = next(key for key in self._keys if key.id == key_id)
            derived = self._derived[key_id, kind] = secret.derive(f"records {kind}")
        mac = base64.urlsafe_b64encode(hmac.digest(derived, place + body, "sha256"))
        return b"\n" + key_id.encode() + b":" + mac[:-1]


def describe_altered(key: str, field: Any = "") -> Altered:
    """Return the error for one altered value."""
    named = f"{key} {_encode(field).decode(errors='replace')}".strip()
    said = f"The record {named} was altered: {ALTERED} Nothing of it counts. Ask the operator to run `sayso doctor`."
    return Altered(said, reason=ALTERED)


def find_kind(key: str) -> str:
    """Return the word that tells a family of keys apart."""
    return (key.partition("}:")[2] or key.removeprefix("sayso:")).partition(":")[0]


def _place(key: str, field: Any) -> bytes:
    name, place = key.encode(), _encode(field)
    return b"%d %d " % (len(name), len(place)) + name + place


def _encode(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
