"""Judge model calls before the model is asked: the rules allow or deny them, and nobody is asked about one."""

from sayso.canonical_json import JsonObject
from sayso.policy.engine import Action, Policy, PolicyEvent
from sayso.records.events import Event, EventType
from sayso.records.suspensions import RunStatus
from sayso.runner.agents import Agent
from sayso.runner.batches import Ending

EVENT_TYPE = "llm_before_execute"


def judge_model_call(agent: Agent, policy: Policy, about: PolicyEvent) -> tuple[Ending, Event] | None:
    """Return how the run ends for a denied model call, and the event that says so; None for an allowed one.

    `about` describes the run after its last turn. A run cannot go on without its model, so it ends: as failed where the
    agent's approval_denial_policy is fail, else as degraded with what it has.
    """
    if not policy.judges_models:
        return None
    update = {
        "event_type": EVENT_TYPE,
        "step": about.step + 1,
        "context": {**about.context, **agent.context},
        "metadata": _describe_model(agent),
    }
    decision = policy.judge(about.model_copy(update=update))
    if decision.action is not Action.DENY:
        return None
    data: JsonObject = {
        "event_type": EVENT_TYPE,
        "action": decision.action,
        "reason": decision.reason,
        "step": about.step + 1,
        "policy_id": decision.policy_id,
        "matched_rules": list(decision.matched_rules),
        "rule_version": decision.rule_version,
        **({"error": decision.error} if decision.error else {}),
    }
    status = RunStatus.FAILED if agent.approval_denial_policy == "fail" else RunStatus.DEGRADED
    reason = f"The rules do not let the agent ask its model: {decision.reason}"
    return Ending(status, reason), Event(type=EventType.POLICY_DECISION, data=data)


def _describe_model(agent: Agent) -> JsonObject:
    """Return the name and the provider of the agent's model, as far as the model tells them."""
    describe = getattr(agent.model, "describe", None)
    return dict(describe()) if callable(describe) else {}
