"""The hash chain of audit trails: write events after the head of a trail, and find where one is broken."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from sayso.core.canonical_json import canonical_json
from sayso.core.records.events import Event, EventType, TrailEntry, TrailHead


def write_events(head: TrailHead, events: tuple[Event, ...], at_ms: int) -> tuple[TrailHead, list[str]]:
    """Return the new head, and the entries for `events` after `head` as JSON."""
    entries: list[str] = []
    seq, hash_ = head.seq, head.hash
    for event in events:
        seq += 1
        data = _write(event.data).decode()
        hash_ = _hash(hash_, f'[{seq},{at_ms},"{event.type}",{data}]'.encode())
        entries.append(f'{{"seq":{seq},"at_ms":{at_ms},"type":"{event.type}","data":{data},"hash":"{hash_}"}}')
    return TrailHead(seq, hash_), entries


class ChainCheck:
    """Checks a trail event by event, after `head`.

    The hash of a tombstone no longer proves what is left of it; the next event proves the hash. The event that recorded
    the erasure counts the tombstones and has their digest, so it proves the rest.
    """

    def __init__(self, head: TrailHead | None = None) -> None:
        self.head = head or TrailHead()
        self._begin = self.head.seq
        self._tombstones: dict[int, list[TrailEntry]] = {}

    def accept(self, entry: TrailEntry) -> bool:
        """Return whether the event follows from those before it; a tombstone does until its erasure says otherwise."""
        if entry.seq != self.head.seq + 1:
            return False
        if entry.erased_by is not None:
            if entry.erased_by <= entry.seq or entry.type == EventType.CONTENTS_ERASED:
                return False
            self._tombstones.setdefault(entry.erased_by, []).append(entry)
        else:
            whole = entry.hash == _hash(self.head.hash, _write([entry.seq, entry.at_ms, entry.type, entry.data]))
            if not whole or (entry.type == EventType.CONTENTS_ERASED and not self._is_proven(entry)):
                return False
        self.head = TrailHead(entry.seq, entry.hash)
        return True

    @property
    def unproven(self) -> int | None:
        """The number of the first tombstone whose erasure no event has recorded so far, or None."""
        return min((tombstones[0].seq for tombstones in self._tombstones.values()), default=None)

    def _is_proven(self, erasure: TrailEntry) -> bool:
        tombstones, data = self._tombstones.pop(erasure.seq, []), erasure.data
        begins_before = isinstance(data.get("first"), int) and 0 < data["first"] <= self._begin
        return begins_before or describe_tombstones(tombstones).items() <= data.items()


def find_break(entries: list[TrailEntry], head: TrailHead | None = None) -> int | None:
    """Return the number of the first event that breaks the chain, or None; `entries` reach to the end of the trail.

    A changed tombstone is found at the event that recorded its erasure. A tombstone without such an event is a break.
    """
    check = ChainCheck(head)
    for entry in entries:
        if not check.accept(entry):
            return check.head.seq + 1
    return check.unproven


def describe_tombstones(tombstones: Sequence[TrailEntry]) -> dict[str, Any]:
    """Return what the event of an erasure says about its tombstones: their count, the first one, and their digest."""
    rows = [[entry.seq, entry.at_ms, entry.type, entry.data, entry.hash] for entry in tombstones]
    first = tombstones[0].seq if tombstones else 0
    return {"events": len(rows), "first": first, "digest": sha256(_write(rows)).hexdigest()}


def write_entry(entry: TrailEntry) -> str:
    """Return a stored entry as JSON, as the trail has it."""
    erased = "" if entry.erased_by is None else f',"erased_by":{entry.erased_by}'
    data, place = _write(entry.data).decode(), f'"seq":{entry.seq},"at_ms":{entry.at_ms}'
    return f'{{{place},"type":"{entry.type}","data":{data},"hash":"{entry.hash}"{erased}}}'


def _write(value: Any) -> bytes:
    # Each part was within the JSON limits on input; together they may exceed them.
    return canonical_json(value, limited=False)


def _hash(before: str, hashed: bytes) -> str:
    return sha256(before.encode() + hashed).hexdigest()[:32]
