"""Judge calls that an agent outside brings, before any of them runs, and what reviewers make of a call's arguments.

Our own runner judges its model's turns in `sayso/judgements.py`; here the calls and their tools' definitions are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.decisions import JsonObject
from sayso.errors import PolicyForbids
from sayso.events import Event, EventType
from sayso.judgements import build_ask, find_misplaced, tell_judged
from sayso.policies import Policy, PolicyEvent
from sayso.questions import put_question
from sayso.requests import Ask, Item
from sayso.rules import ASKING, Action
from sayso.suspensions import RunRef, SuspensionRecord
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
        if misplaced := find_misplaced(one.definition, decision):
            decision = decision.model_copy(update={"action": Action.DENY, "reason": misplaced})
        asks.append(build_ask(one.definition, one.call, decision))
        events.append(tell_judged(one.call, decision))
    return tuple(asks), tuple(events)


def judge_final(
    policy: Policy, record: SuspensionRecord, item: Item, args: JsonObject, definition: ToolDefinition | None
) -> Ask | None:
    """Judge what a reviewer made of an item's arguments; return what is to be asked where another rule asks about that.

    Without the tool's definition nothing can be asked anew, and the item's own rule stays. Whether a call in doubt has
    run is no question for the rules. Raises `PolicyForbids`.
    """
    if item.doubt is not None:
        return None
    judged = policy.judge(describe_item(record, item, args))
    misplaced = find_misplaced(definition, judged) if definition is not None else None
    if judged.action is Action.DENY or misplaced:
        why = (misplaced or judged.reason or "").removesuffix(".")
        raise PolicyForbids(
            f"The rule {judged.policy_id or 'default'} denies {item.tool.name} with these final arguments"
            f"{f': {why}' if why else ''}. Change them, or deny the item.",
            policy_id=judged.policy_id,
        )
    if definition is None or judged.action not in ASKING or judged.policy_id in (None, item.terms.rule_id):
        return None
    return build_ask(
        definition, ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=args), judged
    )


def describe_item(record: SuspensionRecord, item: Item, args: JsonObject) -> PolicyEvent:
    """Return what the rules know of an item's call with these arguments."""
    return PolicyEvent(
        run_id=record.run.id,
        thread_id=record.run.thread_id,
        step=record.step,
        agent=record.run.agent,
        tool_name=item.tool.name,
        tool_args=args,
        context=record.run.context,
    )
