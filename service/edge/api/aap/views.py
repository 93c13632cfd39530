"""Suspensions as requests of the protocol, whose submitted members keep their text, and requests as suspensions."""

import json

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS, iso_utc, new_id
from sayso.core.policy.external import ExternalCall, fit_terms
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Answer, ItemDraft, ItemKind, PresetOutcome
from sayso.core.records.suspensions import Origin, RunRef, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.core.store.announcements import closed_at_ms, request_id_of
from service.core.store.instances import Instance
from service.edge.api.aap.models import ConsumptionView, DecisionView, NewRequest, OutcomeView, split_members

ADAPTER = "aap"
ORIGIN = Origin(framework=ADAPTER, adapter=ADAPTER, state_schema="aap.request/1")
KEPT_MS = 8 * DAY_MS  # retention of a key after its deadline: seven days of delivery attempts, and one more


def fit_draft(timeout_s: int, draft: ItemDraft) -> ItemDraft:
    """Return the draft as an approval within the agent's timeout. A rule that asks for a value becomes a denial."""
    preset = draft.preset
    if draft.kind is not ItemKind.APPROVAL and preset is None:
        why = f"The rule {draft.rule_id or 'default'} asks a person for a value, which this protocol cannot carry."
        preset = PresetOutcome(verdict=Verdict.DENIED, by=Actor(id="policy", kind=ActorKind.POLICY), message=why)
    update = {
        "kind": ItemKind.APPROVAL,
        "allowed": (Answer.APPROVE, Answer.DENY),
        "choices": None,
        "response_schema": None,
        "target_arg": None,
        "terms": fit_terms(draft.terms, timeout_s),
        "preset": preset,
        "fixed": True,
    }
    return draft.model_copy(update=update)


def draft_run(instance: Instance, request: NewRequest) -> RunRef:
    """Return the run of a request. Its owner is the instance of the credential."""
    run_id = new_id("run")
    server: JsonObject = {"aap": {"server": request.server}} if request.server is not None else {}
    known: JsonObject = {"instance_id": instance.id, "provisioner": instance.scope}
    return RunRef(
        id=run_id,
        agent=f"aap/{instance.name}",
        owner=instance.owner,
        thread_id=run_id,
        facts={"aap": known},
        claimed={**(request.context or {}), **server},
        key_id=instance.id,
    )


def draft_call(request: NewRequest) -> ExternalCall:
    """Return the call to evaluate. The protocol sends no schema of its tool."""
    definition = ToolDefinition(name=request.tool, parameters={"type": "object"})
    return ExternalCall(ToolCall(call_id="", index=0, name=request.tool, args=request.arguments), definition)


def describe_reasoning(request: NewRequest) -> tuple[Event, ...]:
    """Return the event with the agent's reasoning, if any."""
    if not request.agent_reasoning:
        return ()
    return (Event(type=EventType.LLM_COMPLETED, data={"text": request.agent_reasoning, "tool_call_count": 1}),)


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
        reason = record.end.error if record.end is not None else None
        return DecisionView(
            status="cancelled",
            note=reason if reason and not reason.startswith(f"Cancelled by {record.run.owner}") else None,
            decided_at=iso_utc(at_ms),
        )
    status, note = status_of(record), outcome.message or None
    expires_at = iso_utc(outcome.start_by_ms) if status == "approved" else None
    return DecisionView.model_validate(
        {"status": status, "note": note, "decided_at": iso_utc(at_ms), "expires_at": expires_at}
    )


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
