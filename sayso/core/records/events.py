"""The events of a run, their hash chain, and the events of webhooks.

The first six kinds and their data fields are those of the tool-call lifecycle (seed 003).
"""

from enum import StrEnum
from typing import Any, NamedTuple

from sayso.core.records.base import Immutable


class EventType(StrEnum):
    """The kinds of event that Sayso writes. The reference of the documentation quotes the text below each."""

    TOOL_BATCH_STARTED = "tool_batch_started"
    """The calls of one turn are judged; calls created over the API have their `owner`."""
    POLICY_DECISION = "policy_decision"
    """The rules judged a call: `action`, `policy_id`, `matched_rules`, `rule_version`, `at_ms`, and `args` unless it
    became an item. Where they apply: `resembles`, `computed`, `remembered`, `absolute`, `shadow`, `candidate`,
    `assessment`, `near_miss`, `would_allow`, `second_look`."""
    RUN_PAUSED = "run_paused"
    """The run is suspended until people have decided its items."""
    RUN_RESUMED = "run_resumed"
    """The run continues with the decided calls."""
    TOOL_COMPLETED = "tool_completed"
    """A call ended, with its result."""
    WARNING = "warning"
    """Something that the run survived."""

    RUN_STARTED = "run_started"
    """A run began: `agent`, and `owner`, the credential that started it."""
    LLM_COMPLETED = "llm_completed"
    """The model answered, with a text or with calls."""
    TOOL_BATCH_COMPLETED = "tool_batch_completed"
    """All calls of a turn have ended."""
    DECISION_RECORDED = "decision_recorded"
    """One decision `by` a person: `verdict` (null until the quorum is met), `message`, the decided `args`, `rule_id`,
    `rule_version`, `reviewers` (empty for any), `quorum`, `no_self_approval`, `no_maker_approval`, and `shown`.
    `invited` is of somebody outside: `address`, `by` whom, and what has `proven` it."""
    DECISION_VOIDED = "decision_voided"
    """A decision no longer counts, because its author (`by`) was deactivated while the item was open."""
    DECISION_DEFERRED = "decision_deferred"
    """A decision takes effect at `until_ms`; its author (`by`) can undo it until then. Agents do not see it."""
    DECISION_RETRACTED = "decision_retracted"
    """A reviewer took their decision back before it took effect."""
    CONFIRMATION_RECORDED = "confirmation_recorded"
    """The acting user (`by`) `confirmed` the call with the `digest` that they saw, or declined it: `message`, and the
    `verdict` (null while approvals are missing)."""
    DECIDED = "decided"
    """The suspension is decided; `unanswered` are the items that closed without a decision."""
    TIMED_OUT = "timed_out"
    """The deadline's `fallback` decided an item, with the fields of `decision_recorded` but `shown`."""
    STAGE_STARTED = "stage_started"
    """The next stage of an item began: `stage` of `stages`, counted from 1, its `reviewers`, `quorum` and `digest`."""
    REVIEWER_REMINDED = "reviewer_reminded"
    """The reviewers of an item were reminded."""
    ESCALATED = "escalated"
    """More reviewers joined an item."""
    CARD_SENT = "card_sent"
    """A card reached a channel."""
    CARD_FAILED = "card_failed"
    """A card did not reach a channel, with the reason."""
    CARD_MOVED = "card_moved"
    """A card was sent anew in its channel, so that it stands last."""
    ITEM_SEEN = "item_seen"
    """A permitted reviewer saw an item for the first time."""
    ITEM_CLAIMED = "item_claimed"
    """A reviewer handles an item."""
    CLAIM_RELEASED = "claim_released"
    """The reviewer handles the item no longer."""
    ITEM_FORWARDED = "item_forwarded"
    """A reviewer (`by`) asked somebody else (`to`) to decide, with a `note` or an empty one. Agents do not see it."""
    REQUESTER_ASKED = "requester_asked"
    """A reviewer asked the requester a question."""
    REQUESTER_ANSWERED = "requester_answered"
    """The requester answered."""
    NOTE_WRITTEN = "note_written"
    """A person wrote to the agent without deciding: `note_id`, `text`, `by`."""
    NOTE_DELIVERED = "note_delivered"
    """The agent's model gets a note: `note_id`, and who wrote it (`by`)."""
    OUTSIDER_INVITED = "outsider_invited"
    """A reviewer (`by`) invited an `address` outside to decide an item of this `digest` until `until_ms`: `note`."""
    OUTSIDER_CODE_SENT = "outsider_code_sent"
    """A code was mailed to the invited `address`."""
    OUTSIDER_PROVEN = "outsider_proven"
    """Somebody outside (`by`) entered the mailed code, and saw the item."""
    INVITATION_CLOSED = "invitation_closed"
    """An invitation ended without a decision: `ending` is `revoked`, `by` a reviewer, or `guessed`."""
    PREVIEW_REQUESTED = "preview_requested"
    """A person asked the workers what the call would do: `by`, and whether with `edited` arguments."""
    PREVIEW_STORED = "preview_stored"
    """What a worker says the call would do: `preview`, the digest of that, and whether it is of `edited` arguments."""
    DEADLINE_EXTENDED = "deadline_extended"
    """A reviewer extended the deadline of an item."""
    DEADLINES_MOVED = "deadlines_moved"
    """Deadlines moved: the time added, and the `freezes` that caused it (`scope`, `by`, `unfrozen_by`)."""
    ASKED_AGAIN = "asked_again"
    """An item is asked again under other terms, with the reason."""
    RESULT_REPORTED = "result_reported"
    """A call in doubt reported its result after all."""
    SECOND_LOOK_TAKEN = "second_look_taken"
    """The opinion of another person, `by`, about a call: `seen` (the number of the event), `verdict`, `agrees`,
    `reason`. It may follow the end of the run."""
    UNDO_OFFERED = "undo_offered"
    """A call ran at once under a veto; until `until_ms` people can undo it: `tool_name`, `call_id`, `index`,
    `suspension_id` (that of the offer)."""
    CALL_UNDONE = "call_undone"
    """A person, `by`, had a call undone: `tool_name`, `call_id`, `suspension_id` (that of the offer), `success` (null
    if it is not known) and `error`. It may follow the end of the run."""
    RUN_RESUMING = "run_resuming"
    """A worker leased the run."""
    PERMIT_REDEEMED = "permit_redeemed"
    """A call may start: `digest` of the call as it runs, `holder`."""
    OUTCOME_REPORTED = "outcome_reported"
    """A client reported the result of its call."""
    PERMIT_LAPSED = "permit_lapsed"
    """A permit was not redeemed in time, or its call did not report."""
    PERMIT_RETURNED = "permit_returned"
    """The agent's framework stopped before the call started; its permit is valid again."""
    RUN_POSTPONED = "run_postponed"
    """A worker could not continue the run and tries again later."""
    RUN_RELEASED = "run_released"
    """A worker gave the run back."""
    RUN_REVIVED = "run_revived"
    """Somebody retried a run that Sayso had given up on."""
    RUN_COMPLETED = "run_completed"
    """The run ended with a result."""
    RUN_DEGRADED = "run_degraded"
    """The run ended early with what it had."""
    RUN_FAILED = "run_failed"
    """The run failed, with the reason."""
    RUN_CANCELLED = "run_cancelled"
    """The run was cancelled; `unanswered` as in `decided`, and `calls_in_flight`, which may have run."""
    CONTENTS_ERASED = "contents_erased"
    """Contents were erased: `by`, `reason`, `events` (how many), `first`, and `digest` of what remains of them."""


class WebhookEvent(StrEnum):
    """The types of event that endpoints receive."""

    ITEM_CREATED = "item.created"
    """An item waits for reviewers."""
    ITEM_DECIDED = "item.decided"
    """An item is decided, by a person, a fallback or the rules."""
    ITEM_ESCALATED = "item.escalated"
    """More reviewers joined an item."""
    ITEM_WITHDRAWN = "item.withdrawn"
    """An item closed without a decision."""
    RUN_SUSPENDED = "run.suspended"
    """A run waits for people."""
    RUN_RESUMED = "run.resumed"
    """A decided run continues."""
    RUN_FINISHED = "run.finished"
    """A run ended."""


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
