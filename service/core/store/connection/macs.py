"""MACs of stored records: under a key outside of the store, a writer to the store alone forges nothing.

Every value of a record ends with a line of the id of a key and an HMAC-SHA256 over the record's kind, its place and its
content. Commands add and check it where they leave and enter the process, so no reader or writer can forget to.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from sayso.core.key_files import SecretKey
from sayso.errors import Altered, InvalidInput
from service.core.metrics import note_refused_record
from service.core.store.connection.sealing import Keyring
from service.core.store.keys import PREFIX, SHARED

_REASONS = {
    "an index: what reads it takes ids only, and checks their records": """
        schedule inbox open open-of decided cards deliveries lane failures learning lessons runs runs-of owners trails
        erased api-keys rule-versions replays asked-by second-look groups-of contacts-of sessions-of provider-sessions
        grants-of mandates-of passkeys-of bucket buckets texts directory-names last-approval near-denials previews
        announcements recalled uncut returned""",
    "a count, or a mark of processes": """
        pace pace-of counter thread thread-tools grant-uses grant-trials rule-hits starts used refusals figures drilled
        recent waits facts totals file-bytes file-shares attempts unchecked checking checkpoint-of checkpoint-sinks
        clock settings rules commits comparing store waiting rush lease card-claim presence retained next-drill
        logout-token format moving""",
    "copies of records, with the MACs of these": "ready handed",
    "content whose digest a record has, or that is signed": "state file-contents checkpoints",
    "appended by a script, or removed by content": """
        external external-seen comments comments-seen files rule-changes denials precedents""",
}
PLAIN = {kind: why for why, kinds in _REASONS.items() for kind in kinds.split()}
"""The kinds of keys whose values carry no MAC, and why."""

_LENGTH = 54  # of a MAC: a line break, the id of a key, a colon and 32 bytes in base64 without padding
MAC = re.compile(rb"\nk[0-9a-f]{8}:[A-Za-z0-9_-]{43}\Z")
"""What the MAC of any key has the form of."""

_MOST_REMEMBERED = 1_000
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
        self._keyring = Keyring(path)
        self._begun: dict[tuple[str, str], hmac.HMAC] = {}
        self._logged: set[str] = set()
        self._unknown: set[str] = set()

    @property
    def active(self) -> bool:
        return self._keyring.current is not None

    def add(self, key: str | bytes, value: Any, field: Any = "") -> Any:
        """Return a value as it is stored under this key, in this field."""
        current = self._keyring.current
        if current is None or (kind := find_kind(key)) in PLAIN:
            return value
        body = _encode(value)
        return body + self._compute(current, kind, _place(key, kind, field), body)

    def check(self, key: str | bytes, raw: Any, field: Any = "") -> Any:
        """Return a stored value without its MAC; `REFUSED` where that is wrong, which is logged and counted."""
        if raw is None or not self.active or find_kind(key) in PLAIN:
            return raw
        body = self.open(key, _encode(raw), field)
        if body is not None:
            return body
        note_refused_record()
        named = name_value(key, field)
        if named not in self._logged and len(self._logged) < _MOST_REMEMBERED:
            self._logged.add(named)
            _LOG.error("record_altered", record=named, reason=ALTERED)
        return REFUSED

    def open(self, key: str | bytes, stored: bytes, field: Any = "") -> bytes | None:
        """Return a stored value without its MAC; None where that is missing or wrong."""
        body, mac = stored[:-_LENGTH], stored[-_LENGTH:]
        known = self._find(mac[1:10].decode("ascii", "replace"))
        if known is None:
            return None
        kind = find_kind(key)
        own = self._compute(known, kind, _place(key, kind, field), body)
        return body if hmac.compare_digest(mac, own) else None

    def protect(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return a command with MACs in what it writes."""
        if not self.active or len(args) < 3:
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
        if not self.active or not reply or isinstance(reply, Exception):
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

    def _find(self, key_id: str) -> SecretKey | None:
        """Return a key. The file is read again for one that it did not have, at most once for each."""
        current = self._keyring.current
        if current is not None and current.id == key_id:
            return current
        if key_id in self._unknown or len(self._unknown) > _MOST_REMEMBERED:
            return None
        try:
            known = self._keyring.find(key_id)
        except InvalidInput as error:
            _LOG.error("key_file_unreadable", reason=error.message)
            known = None
        if known is None:
            self._unknown.add(key_id)
        return known

    def _compute(self, key: SecretKey, kind: str, place: bytes, body: bytes) -> bytes:
        begun = self._begun.get((key.id, kind))
        if begun is None:  # a copy of it takes half the time of a new one
            begun = self._begun[key.id, kind] = hmac.new(key.derive(f"records {kind}"), digestmod="sha256")
        mac = begun.copy()
        mac.update(place + body)
        encoded = base64.urlsafe_b64encode(mac.digest())[:-1]
        return b"\n" + key.id.encode() + b":" + encoded


def describe_altered(key: str | bytes, field: Any = "") -> Altered:
    """Return the error for one altered value."""
    advice = "Nothing of it counts. Ask the operator to run `sayso doctor`."
    return Altered(f"The record {name_value(key, field)} was altered: {ALTERED} {advice}", reason=ALTERED)


def find_kind(key: str | bytes) -> str:
    """Return the word that tells a family of keys apart."""
    key = key if isinstance(key, str) else key.decode(errors="replace")
    return (key.partition("}:")[2] or key.removeprefix("sayso:")).partition(":")[0]


def find_shared(key: str | bytes) -> bytes:
    """Return the name outside of any tenant of a key that a tenant has for itself in a cluster; any other as it is."""
    name = _encode(key)
    own = name.partition(b"}:")[2] if find_kind(key) in SHARED else b""
    return PREFIX.encode() + own if own else name


def _place(key: str | bytes, kind: str, field: Any) -> bytes:
    name, place = find_shared(key) if kind in SHARED else _encode(key), _encode(field)
    return b"%d %d " % (len(name), len(place)) + name + place


def name_value(key: str | bytes, field: Any) -> str:
    """Return the name of a value for people: its key, and its field."""
    return b" ".join(filter(None, (_encode(key), _encode(field)))).decode(errors="replace")


def _encode(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
