"""The table of legal transitions, as data. Every transition checks itself against `LEGAL`."""

from typing import NamedTuple

from sayso.core.records.events import EventType
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.errors import IllegalTransition


class Step(NamedTuple):
    """One row of the table: the statuses before and after, and the events it may write."""

    sources: frozenset[Status | None]
    targets: frozenset[Status]
    events: frozenset[EventType]


def _step(sources: str, targets: str, *events: EventType) -> Step:
    return Step(
        frozenset(None if name == "-" else Status(name) for name in sources.split()),
        frozenset(map(Status, targets.split())),
        frozenset(events),
    )


_ANY = "pending decided resuming resumed cancelled failed"
_ENDS = (EventType.RUN_COMPLETED, EventType.RUN_DEGRADED, EventType.RUN_FAILED)

LEGAL: dict[str, Step] = {
    "suspend": _step("-", "pending decided", EventType.RUN_STARTED, EventType.RUN_PAUSED),
    "decide": _step(
        "pending",
        "pending decided",
        EventType.DECISION_RECORDED,
        EventType.DECISION_DEFERRED,
        EventType.STAGE_STARTED,
        EventType.DECIDED,
    ),
    "confirm": _step("pending", "pending decided", EventType.CONFIRMATION_RECORDED, EventType.DECIDED),
    "take_effect": _step(
        "pending", "pending decided", EventType.DECISION_RECORDED, EventType.STAGE_STARTED, EventType.DECIDED
    ),
    "void_decisions": _step("pending", "pending", EventType.DECISION_VOIDED),
    "retract": _step("pending", "pending", EventType.DECISION_RETRACTED),
    "remind": _step("pending", "pending", EventType.REVIEWER_REMINDED),
    "escalate": _step("pending", "pending", EventType.ESCALATED),
    "see": _step("pending", "pending", EventType.ITEM_SEEN),
    "record_deliveries": _step(_ANY, _ANY, EventType.CARD_SENT, EventType.CARD_FAILED, EventType.ESCALATED),
    "move_cards": _step("pending", "pending", EventType.CARD_MOVED),
    "claim": _step("pending", "pending", EventType.ITEM_CLAIMED),
    "release_claim": _step("pending", "pending", EventType.CLAIM_RELEASED),
    "forward": _step("pending", "pending", EventType.ITEM_FORWARDED),
    "ask_requester": _step("pending", "pending", EventType.REQUESTER_ASKED),
    "answer_inquiry": _step("pending", "pending", EventType.REQUESTER_ANSWERED),
    "invite": _step("pending", "pending", EventType.OUTSIDER_INVITED),
    "revoke_invitation": _step("pending", "pending", EventType.INVITATION_CLOSED),
    "send_code": _step("pending", "pending", EventType.OUTSIDER_CODE_SENT),
    "enter_code": _step("pending", "pending", EventType.OUTSIDER_PROVEN, EventType.INVITATION_CLOSED),
    "request_preview": _step("pending", "pending", EventType.PREVIEW_REQUESTED),
    "store_preview": _step("pending", "pending", EventType.PREVIEW_STORED, EventType.DECISION_VOIDED),
    "write_note": _step("pending decided resuming", "pending decided resuming", EventType.NOTE_WRITTEN),
    "take_second_look": _step(_ANY, _ANY, EventType.SECOND_LOOK_TAKEN),
    "note_undone": _step(_ANY, _ANY, EventType.CALL_UNDONE),
    "extend": _step("pending", "pending", EventType.DEADLINE_EXTENDED),
    "ask_again": _step("pending", "pending", EventType.ASKED_AGAIN),
    "shift_deadlines": _step("pending decided resuming", "pending decided resuming", EventType.DEADLINES_MOVED),
    "hold": _step("pending decided resuming", "pending decided resuming"),
    "expire": _step("pending", "pending decided", EventType.TIMED_OUT, EventType.DECIDED, EventType.ESCALATED),
    "report": _step("pending", "pending decided", EventType.RESULT_REPORTED, EventType.DECIDED),
    "cancel": _step("pending decided resuming", "cancelled", EventType.RUN_CANCELLED),
    "lease": _step("decided resuming", "resuming", EventType.RUN_RESUMING),
    "renew": _step("resuming", "resuming"),
    "redeem": _step("resuming", "resuming", EventType.PERMIT_REDEEMED),
    "return_permits": _step("resuming", "resuming", EventType.PERMIT_RETURNED),
    "checkpoint": _step("resuming", "resuming", EventType.RUN_RESUMED),
    "note_results": _step("resuming", "resuming"),
    "postpone": _step("resuming", "resuming", EventType.RUN_POSTPONED),
    "release": _step("resuming", "decided", EventType.RUN_RELEASED),
    "redrive": _step("decided resuming", "decided resuming failed", EventType.RUN_FAILED),
    "suspend_again": _step("resuming", "resumed", EventType.RUN_RESUMED, EventType.ASKED_AGAIN, EventType.RUN_PAUSED),
    "settle": _step("resuming", "resumed", EventType.RUN_RESUMED, *_ENDS),
    "client_redeem": _step("decided resuming", "resuming", EventType.RUN_RESUMED, EventType.PERMIT_REDEEMED),
    "conclude": _step("resuming", "resuming resumed", EventType.OUTCOME_REPORTED, *_ENDS),
    "lapse": _step("decided resuming", "decided resuming resumed", EventType.PERMIT_LAPSED, *_ENDS),
    "mark_in_doubt": _step("resuming", "resumed", EventType.RUN_PAUSED),
    "supersede": _step("pending decided resumed", "cancelled resumed", EventType.ASKED_AGAIN, EventType.RUN_PAUSED),
    "recover_start": _step(
        "decided resuming", "resuming resumed", EventType.PERMIT_REDEEMED, EventType.OUTCOME_REPORTED, *_ENDS
    ),
    "give_up": _step("resuming", "failed", EventType.RUN_FAILED),
    "revive": _step("failed", "decided", EventType.RUN_REVIVED),
}
"""Every step of a suspension. The client's own runs take `client_redeem`, `conclude`, `lapse`, `mark_in_doubt` and
`supersede`; a worker takes the steps from `lease` to `settle`. `docs/decisions/bookkeeping-steps.md` explains those
that keep the status."""


def check_step(record: SuspensionRecord | None, step: str) -> None:
    """Raise `IllegalTransition` unless `LEGAL` allows `step` from the record's status."""
    status = record.status if record is not None else None
    sources = LEGAL[step].sources
    if status not in sources:
        needed = " or ".join(source for source in Status if source in sources) or "new"
        raise IllegalTransition(
            f"Cannot {step.removeprefix('client_').replace('_', ' ')}: "
            f"the suspension is {status or 'new'}, not {needed}. Read it again.",
            step=step,
            status=status,
        )
