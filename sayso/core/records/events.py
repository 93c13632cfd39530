"""The events of a run, their hash chain, and the events of webhooks.

The first six kinds and their data fields are those of the tool-call lifecycle (seed 003).
"""

from enum import StrEnum
from typing import Any, NamedTuple

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
