"""The events of a run, and their hash chain.

The first six kinds and their data fields are those of the tool-call lifecycle (seed 003).
"""

from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

from sayso.canonical_json import canonical_json
from sayso.records.base import Immutable


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


class Event(NamedTuple):
    """An event that is not yet in the audit trail."""

    type: EventType
    data: dict[str, Any] = {}  # noqa: RUF012  never changed


class TrailEntry(Immutable):
    """A numbered event of the audit trail; `hash` chains it to the previous entry."""

    seq: int
    at_ms: int
    type: str
    data: dict[str, Any]
    hash: str


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


def find_break(entries: list[TrailEntry], head: TrailHead | None = None) -> int | None:
    """Return the sequence number of the first entry that breaks the chain, or None."""
    head = head or TrailHead()
    for entry in entries:
        expected = _hash(head.hash, _write([head.seq + 1, entry.at_ms, entry.type, entry.data]))
        if entry.seq != head.seq + 1 or entry.hash != expected:
            return head.seq + 1
        head = TrailHead(seq=entry.seq, hash=entry.hash)
    return None


def _write(value: Any) -> bytes:
    # Each part was within the JSON limits on input; together they may exceed them.
    return canonical_json(value, limited=False)


def _hash(before: str, hashed: bytes) -> str:
    return sha256(before.encode() + hashed).hexdigest()[:32]
