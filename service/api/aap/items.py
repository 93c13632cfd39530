"""Turn a request of the protocol into what the desk asks: one item to approve or deny, whose moments never move."""

from dataclasses import dataclass

from sayso.canonical_json import JsonObject, parse_json
from sayso.clock import new_id
from sayso.policy.external import ExternalCall
from sayso.records.decisions import Actor, ActorKind, Verdict
from sayso.records.events import Event, EventType
from sayso.records.items import Answer, ItemDraft, ItemKind, PresetOutcome
from sayso.records.suspensions import Origin, RunRef
from sayso.records.terms import LONGEST_WAIT_S, Fallback, FallbackAction, RuleTerms
from sayso.records.tool_calls import ToolCall, ToolDefinition
from service.api.aap.models import NewRequest
from service.store.instances import Instance

ADAPTER = "aap"
KEPT_MS = 8 * 86_400_000
"""How long a request's key is kept after its deadline: as long as a message about it may be under way, and a day."""


@dataclass(frozen=True)
class Fitting:
    """Makes of what the rules ask something that the protocol can express."""

    timeout_s: int

    def fit(self, ask: ItemDraft) -> ItemDraft:
        """Return the ask as a plain approval within the time the agent waits.

        A rule that wants a value is answered with a denial: a value cannot be carried back, and the call as it is was
        not what the rule would let through.
        """
        preset = ask.preset
        if ask.kind is not ItemKind.APPROVAL and preset is None:
            why = f"The rule {ask.rule_id or 'default'} asks a person for a value, which this protocol cannot carry."
            preset = PresetOutcome(verdict=Verdict.DENIED, by=Actor(id="policy", kind=ActorKind.POLICY), message=why)
        return ask.model_copy(
            update={
                "kind": ItemKind.APPROVAL,
                "allowed": (Answer.APPROVE, Answer.DENY),
                "choices": None,
                "response_schema": None,
                "target_arg": None,
                "terms": fit_terms(ask.terms, self.timeout_s),
                "preset": preset,
                "fixed": True,
            }
        )


def fit_terms(terms: RuleTerms, timeout_s: int) -> RuleTerms:
    """Return the rule's terms within the time asked for; at their end nothing is approved and nobody gets more time."""
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


def draft_run(instance: Instance, asked: NewRequest) -> RunRef:
    """Return the run a request belongs to. Who asks comes from the credential, whatever the context says."""
    run_id = new_id("run")
    known: JsonObject = {"instance_id": instance.id, "provisioner": instance.scope}
    return RunRef(
        id=run_id,
        agent=f"aap/{instance.name}",
        owner=instance.owner,
        thread_id=run_id,
        facts={"aap": known},
        claimed={**(asked.context or {}), **({"aap": {"server": asked.server}} if asked.server is not None else {})},
        key_id=instance.id,
    )


def draft_call(asked: NewRequest) -> ExternalCall:
    """Return the call that is to be judged; what is not told of its tool is not known."""
    definition = ToolDefinition(name=asked.tool, parameters={"type": "object"})
    return ExternalCall(ToolCall(call_id="", index=0, name=asked.tool, args=asked.arguments), definition)


def fitting_for(asked: NewRequest) -> Fitting:
    """Return how to ask this request; its server and its context are shown as what the agent says."""
    return Fitting(asked.timeout_s)


def describe_words(asked: NewRequest) -> tuple[Event, ...]:
    """Return the event that tells what the agent says about its own call."""
    if not asked.agent_reasoning:
        return ()
    return (Event(type=EventType.LLM_COMPLETED, data={"text": asked.agent_reasoning, "tool_call_count": 1}),)


def origin() -> Origin:
    """Return where these runs come from."""
    return Origin(framework=ADAPTER, adapter=ADAPTER, state_schema="aap.request/1")


def read_again(raw: bytes) -> NewRequest:
    """Return what was submitted, from what was kept of it."""
    return NewRequest.model_validate(parse_json(raw))
