"""Write suspensions as requests of the protocol. Submitted members keep their original text."""

import json

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import ActorKind
from sayso.core.records.suspensions import Status, SuspensionRecord
from service.api.aap.exact_json import split_members
from service.api.aap.models import ConsumptionView, DecisionView, OutcomeView
from service.store.suspensions.outbox import closed_at_ms, request_id_of

_SUBMITTED = ("tool", "server", "arguments", "timeout", "agent_reasoning", "context")


def status_of(record: SuspensionRecord) -> str:
    """Return the status of the request. An outcome is final; the end of the run does not change it."""
    outcome = record.items[0].outcome
    if outcome is None:
        return "cancelled" if record.status is Status.CANCELLED else "pending"
    if outcome.by.kind is ActorKind.TIMEOUT:
        return "expired"
    return "approved" if outcome.may_run else "denied"


def write_request(record: SuspensionRecord, submitted: bytes) -> str:
    """Return the request as JSON."""
    members = split_members(submitted)
    parts = {name: members[name] for name in _SUBMITTED if name in members}
    state = {
        "id": request_id_of(record.id),
        "status": status_of(record),
        "created_at": iso_utc(record.created_at_ms),
        "deadline_at": iso_utc(record.items[0].terms.deadline_at_ms),
    }
    parts |= {name: json.dumps(value) for name, value in state.items()}
    if (decision := view_decision(record)) is not None:
        parts["decision"] = decision.model_dump_json(exclude_none=True)
    if (consumption := view_consumption(record)) is not None:
        parts["consumption"] = consumption.model_dump_json(exclude_none=True)
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in parts.items()) + "}"


def write_erased(record: SuspensionRecord) -> bytes:
    """Return what is left of a submitted request whose contents were erased: the tool, and how long it waited."""
    item = record.items[0]
    timeout_s = max(1, (item.terms.deadline_at_ms - record.created_at_ms) // 1000)
    return json.dumps({"tool": item.tool.name, "arguments": {}, "timeout": f"{timeout_s}s"}).encode()


def view_decision(record: SuspensionRecord) -> DecisionView | None:
    """Return the outcome, or None while the request is pending."""
    at_ms, outcome = closed_at_ms(record), record.items[0].outcome
    if at_ms is None:
        return None
    if outcome is None:
        return DecisionView(status="cancelled", note=_cancel_reason(record), decided_at=iso_utc(at_ms))
    status, note = status_of(record), outcome.message or None
    expires_at = iso_utc(outcome.start_by_ms) if status == "approved" else None
    return DecisionView.model_validate(
        {"status": status, "note": note, "decided_at": iso_utc(at_ms), "expires_at": expires_at}
    )


def _cancel_reason(record: SuspensionRecord) -> str | None:
    reason = record.end.error if record.end is not None else None
    return reason if reason and not reason.startswith(f"Cancelled by {record.run.owner}") else None


def view_consumption(record: SuspensionRecord) -> ConsumptionView | None:
    """Return the consumption of the approval, if any."""
    permit = record.items[0].permit
    if permit is None:
        return None
    report = permit.report
    outcome = None
    if report is not None:
        status = "succeeded" if report.success else "failed"
        outcome = OutcomeView.model_validate(
            {"status": status, "note": report.error or None, "reported_at": iso_utc(report.at_ms)}
        )
    return ConsumptionView(consumed_at=iso_utc(permit.redeemed_at_ms), outcome=outcome)
