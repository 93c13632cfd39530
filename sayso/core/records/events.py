"""The events of a run, their hash chain, and the events of webhooks.

The first six kinds and their data fields are those of the tool-call lifecycle (seed 003).
"""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

from sayso.core.canonical_json import canonical_json
from sayso.core.records.base import Immutable


class EventType(StrEnum):
    """The kinds of event that Sayso writes."""

    TOOL_BATCH_STARTED = "tool_batch_started"
    POLICY_DECISION = "policy_decision"
    RUN_PAUSED = "run_paused"
    RUN_RESUMED = "run_resumed"
    TOOL_COMPLETED = "tool_completed"
    WARNING = "warning"

    RUN_STARTED = "run_started"
    LLM_COMPLETED = "llm_completed"
    TOOL_BATCH_COMPLETED = "tool_batch_completed"
    DECISION_RECORDED = "decision_recorded"
    DECISION_VOIDED = "decision_voided"
    DECIDED = "decided"
    TIMED_OUT = "timed_out"
    REVIEWER_REMINDED = "reviewer_reminded"
    ESCALATED = "escalated"
    CARD_SENT = "card_sent"
    CARD_FAILED = "card_failed"
    CARD_MOVED = "card_moved"
    ITEM_SEEN = "item_seen"
    ITEM_CLAIMED = "item_claimed"
    CLAIM_RELEASED = "claim_released"
    REQUESTER_ASKED = "requester_asked"
    REQUESTER_ANSWERED = "requester_answered"
    DEADLINE_EXTENDED = "deadline_extended"
    DEADLINES_MOVED = "deadlines_moved"
    ASKED_AGAIN = "asked_again"
    RESULT_REPORTED = "result_reported"
    SECOND_LOOK_TAKEN = "second_look_taken"
    RUN_RESUMING = "run_resuming"
    PERMIT_REDEEMED = "permit_redeemed"
    OUTCOME_REPORTED = "outcome_reported"
    PERMIT_LAPSED = "permit_lapsed"
    PERMIT_RETURNED = "permit_returned"
    RUN_POSTPONED = "run_postponed"
    RUN_RELEASED = "run_released"
    RUN_REVIVED = "run_revived"
    RUN_COMPLETED = "run_completed"
    RUN_DEGRADED = "run_degraded"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"
    CONTENTS_ERASED = "contents_erased"


class WebhookEvent(StrEnum):
    """The types of event that endpoints receive."""

    ITEM_CREATED = "item.created"
    ITEM_DECIDED = "item.decided"
    ITEM_ESCALATED = "item.escalated"
    ITEM_WITHDRAWN = "item.withdrawn"
    RUN_SUSPENDED = "run.suspended"
    RUN_RESUMED = "run.resumed"
    RUN_FINISHED = "run.finished"


class Event(NamedTuple):
    """An event that is not yet in the audit trail."""

    type: EventType
    data: dict[str, Any] = {}  # noqa: RUF012  never changed


class TrailEntry(Immutable):
    """A numbered event of the audit trail; `hash` chains it to the previous entry.

    A tombstone is an event whose contents were erased. It keeps the hash of the whole event, and `erased_by` is the
    number of the later event that recorded the erasure.
    """

    seq: int
    at_ms: int
    type: str
    data: dict[str, Any]
    hash: str
    erased_by: int | None = None


class TrailHead(NamedTuple):
    """The last sequence number of a trail, and its hash."""

    seq: int = 0
    hash: str = ""


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
