"""Judge calls that an agent outside brings one by one or as a batch, before any of them runs.

Our own runner judges its model's turns in `sayso/judgements.py`; here the calls and their tools' definitions are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.events import Event, EventType
from sayso.judgements import build_ask, tell_judged
from sayso.policies import Policy, PolicyDecision, PolicyEvent
from sayso.questions import put_question
from sayso.requests import Ask
from sayso.rules import Action
from sayso.suspensions import RunRef
from sayso.tool_calls import ToolCall, ToolDefinition


@dataclass(frozen=True)
class GatedCall:
    """A call that is to be gated, with the definition of its tool."""

    call: ToolCall
    definition: ToolDefinition


def gate_calls(policy: Policy, run: RunRef, calls: Sequence[GatedCall]) -> tuple[tuple[Ask, ...], tuple[Event, ...]]:
    """Return what is to be asked about the calls, the policy's own rulings included, and the events that tell of it."""
    names = [one.call.name for one in calls]
    data = {"tool_call_count": len(names), "step": 0, "tool_names": names, "agent": run.agent, "owner": run.owner}
    events = [Event(type=EventType.TOOL_BATCH_STARTED, data=data)]
    asks: list[Ask] = []
    for one in calls:
        event = PolicyEvent(
            run_id=run.id,
            thread_id=run.thread_id,
            agent=run.agent,
            tool_name=one.call.name,
            tool_args=one.call.args,
            context=run.context,
        )
        decision = put_question(one.definition, one.call.args, policy.judge(event))
        decision = _deny_misplaced(one.definition, decision)
        asks.append(build_ask(one.definition, one.call, decision))
        events.append(tell_judged(one.call, decision))
    return tuple(asks), tuple(events)


def _deny_misplaced(definition: ToolDefinition, decision: PolicyDecision) -> PolicyDecision:
    """Return the decision, denied where it asks for a value that no call of the tool can be given.

    People would be asked for an answer, and every answer be refused.
    """
    payload, schema = decision.request_payload, definition.parameters
    target = payload.target_arg if payload and decision.action is Action.REQUEST_USER_INPUT else None
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    properties = schema.get("properties") or {}
    if target is None or not closed or not isinstance(properties, dict) or target in properties:
        return decision
    words = (
        f"The rule {decision.policy_id} asks for a value for {target!r}, which {definition.name} does not take. "
        "Correct the rule's target_arg, or let the tool take it."
    )
    return decision.model_copy(update={"action": Action.DENY, "reason": words})
