"""Convert a request of the protocol into a suspension with one item, whose times never change."""

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS, new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Answer, ItemDraft, ItemKind, PresetOutcome
from sayso.core.records.suspensions import Origin, RunRef
from sayso.core.records.terms import LONGEST_WAIT_S, Fallback, FallbackAction, RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.api.aap.models import NewRequest
from service.store.instances import Instance

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


def fit_terms(terms: RuleTerms, timeout_s: int) -> RuleTerms:
    """Return the rule's terms within the timeout. They deny at the deadline and allow no extension."""
    stated = terms.timeout_s if "timeout_s" in terms.model_fields_set else timeout_s
    within_s = max(1, min(stated, timeout_s, LONGEST_WAIT_S))
    message = terms.fallback.message if terms.fallback.action is FallbackAction.DENY else None
    update = {
        "timeout_s": within_s,
        "extend_by_s": 0,
        "unattended_approval": False,
        "fallback": Fallback(action=FallbackAction.DENY, message=message),
        "remind_after_s": tuple(after_s for after_s in terms.remind_after_s if after_s < within_s),
        "escalate": tuple(step for step in terms.escalate if step.after_s < within_s),
    }
    return terms.model_copy(update=update)


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
