"""Judgement of model turns: every call against the rules and its tool, before any of them runs."""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256

from pydantic import JsonValue

from sayso.core.canonical_json import Around, JsonObject, parse_json
from sayso.core.policy import decisions as asking
from sayso.core.policy.budgets import complete
from sayso.core.policy.counters.assessing import recall_assessment
from sayso.core.policy.counters.charging import NO_READINGS, Ledger
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.decisions import PolicyDecision, put_question
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action, same_json
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolCall
from sayso.errors import SaysoError
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall, Ending, Stop, VetoTerms, end_call
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.tools import Tool

MAX_NAME_CHARS = 200
MODEL_CALL = "llm_before_execute"
_EXCERPT_CHARS = 200
_EXHAUSTED = (
    "Not run: while it waited, other calls used up what the rules allow. Request it again, and a person decides."
)
_STATE = Around(depth=3, values=203)
"""The state around arguments counts towards the same limits."""


@complete
def list_wanted(agent: Agent, calls: Iterable[ToolCall], policy: Policy, about: PolicyEvent) -> list[Wanted]:
    """Return the counters that judging the calls reads. `about` holds the facts about the run."""
    if not policy.remembering:
        return []
    about = _with_context(agent, about)
    return [wanted for call in calls for wanted in policy.list_wanted(_with_call(agent, about, call))]


@complete
def list_batch_wanted(agent: Agent, batch: Batch, policy: Policy, about: PolicyEvent) -> list[Wanted]:
    """Return the counters that judging the calls of a batch again reads, as `judge_again` does."""
    if not policy.remembering:
        return []
    about = _with_context(agent, about)
    events = (_as_asked(agent, about, entry) for entry in batch.calls if entry.may_run)
    return [wanted for event in events for wanted in policy.list_wanted(event)]


def read_calls(turn: ModelTurn, about: PolicyEvent) -> list[ToolCall]:
    """Return the calls of a turn; arguments that cannot be read are empty."""
    return [_read_call(about, index, asked)[0] for index, asked in enumerate(turn.calls)]


@complete
def judge_turn(
    agent: Agent, turn: ModelTurn, policy: Policy, about: PolicyEvent, readings: Readings = NO_READINGS
) -> tuple[Batch, tuple[Event, ...]]:
    """Judge the calls of a turn by the counters of `list_wanted`; return the batch and its events."""
    about, ledger = _with_context(agent, about), Ledger(policy, readings)
    judged = [_judge(agent, policy, ledger, about, index, asked) for index, asked in enumerate(turn.calls)]
    batch = Batch(calls=tuple(entry for entry, _ in judged), started_step=about.step)
    names = [entry.call.name for entry in batch.calls]
    data = {"tool_call_count": len(names), "step": about.step, "tool_names": names}
    data |= asking.describe_progress(about.progress)
    decisions = [event for _, event in judged]
    warnings: list[Event] = []
    for made in (event.data for event in decisions if "error" in event.data):
        message = f"The rules for {made['tool_name']} could not all be judged: {made['error']}"
        warnings.append(Event(type=EventType.WARNING, data={"message": message, "index": made["index"]}))
    return batch, (Event(type=EventType.TOOL_BATCH_STARTED, data=data), *decisions, *warnings)


@complete
def judge_again(
    agent: Agent, batch: Batch, policy: Policy, about: PolicyEvent, readings: Readings, *, may_ask: bool
) -> tuple[Batch, tuple[Event, ...]]:
    """Judge the calls again that are about to start, after counters have changed; return the batch and its events.

    A call that needs a person now is asked about if `may_ask`; otherwise it ends, and the model can request it again.
    """
    about, ledger = _with_context(agent, about), Ledger(policy, readings)
    calls: list[BatchCall] = []
    events: list[Event] = []
    for entry in batch.calls:
        tool = agent.tools_by_name.get(entry.call.name)
        if not entry.may_run or entry.key is not None or tool is None:
            calls.append(entry)
            continue
        event = _as_asked(agent, about, entry)
        beside = ledger.judge_beside(event, tool.definition)
        decision = ledger.judge_request(event) if entry.ask is None else ledger.judge_start(event)
        decision = (
            asking.settle_veto(decision, reversible=tool.definition.reversible) if entry.ask is None else decision
        )
        events.append(asking.describe_judged(entry.call, decision, tool.definition, beside))
        if entry.ask is not None and decision.action is not Action.DENY:
            calls.append(entry.model_copy(update={"charges": decision.charges}))
            continue
        followed = _follow(agent, policy, tool, entry.call, decision)
        calls.append(followed if may_ask or not followed.waits else end_call(entry, _EXHAUSTED))
    return batch.model_copy(update={"calls": tuple(calls)}), tuple(events)


@complete
def deny_changed(agent: Agent, batch: Batch, policy: Policy, describe: Callable[[], PolicyEvent]) -> Batch:
    """Deny every call whose edited arguments the rules deny. Changing a rule never changes other calls that wait.

    The rules see the time at which the agent asked. `describe` returns the facts about the run.
    """
    changed = {
        entry.call.index
        for entry in batch.calls
        if entry.ask is not None and entry.may_run and not same_json(entry.call.args, entry.ask.tool.args)
    }
    if not changed:
        return batch
    about = _with_context(agent, describe())
    calls: list[BatchCall] = []
    for entry in batch.calls:
        decision = policy.judge(_as_asked(agent, about, entry)) if entry.call.index in changed else None
        # counters are read at the start
        counted = decision is not None and decision.in_doubt is not None and policy.remembering
        denied = decision is not None and decision.action is Action.DENY and not counted
        calls.append(end_call(entry, _denial(policy, decision), Stop.DENIED) if decision and denied else entry)
    return batch.model_copy(update={"calls": tuple(calls)})


@complete
def judge_model_call(agent: Agent, policy: Policy, describe: Callable[[], PolicyEvent]) -> tuple[Ending, Event] | None:
    """Return how a denied model call ends the run, and its event; None if allowed."""
    if not policy.judges_models:
        return None
    about = describe()
    update = {
        "event_type": MODEL_CALL,
        "step": about.step + 1,
        "context": {**about.context, **agent.context},
        "metadata": _describe_model(agent),
    }
    decision = policy.judge(about.model_copy(update=update))
    if decision.action is not Action.DENY:
        return None
    data: JsonObject = {
        "event_type": MODEL_CALL,
        "action": decision.action,
        "reason": decision.reason,
        "step": about.step + 1,
        "policy_id": decision.policy_id,
        "matched_rules": list(decision.matched_rules),
        "rule_version": decision.rule_version,
        **({"error": decision.error} if decision.error else {}),
        **({"at_ms": decision.at_ms} if decision.at_ms is not None else {}),
    }
    status = RunStatus.FAILED if agent.approval_denial_policy == "fail" else RunStatus.DEGRADED
    reason = f"The rules do not let the agent ask its model: {decision.reason}"
    return Ending(status, reason), Event(type=EventType.POLICY_DECISION, data=data)


def write_turn(turn: ModelTurn) -> ChatMessage:
    """Return the turn as a transcript message, without arguments that are not JSON, which some endpoints refuse."""
    if not turn.calls:
        return {"role": "assistant", "content": turn.text}
    calls: list[JsonValue] = [
        {
            "id": asked.call_id[:MAX_NAME_CHARS],
            "type": "function",
            "function": {"name": _name(asked), "arguments": json.dumps(_read_args(asked)[0], ensure_ascii=False)},
        }
        for asked in turn.calls
    ]
    return {"role": "assistant", "content": turn.text or None, "tool_calls": calls}


def name_model(agent: Agent) -> str:
    """Return the name of the agent's model, or an empty text if it tells none."""
    name = _describe_model(agent).get("model")
    return name if isinstance(name, str) else ""


def known_id(call_id: str) -> str:
    """Return the id to save a call under: the model's own, or the hash of one that is too long to keep."""
    return call_id if len(call_id) <= MAX_NAME_CHARS else sha256(call_id.encode()).hexdigest()


def _read_call(about: PolicyEvent, index: int, asked: RequestedCall) -> tuple[ToolCall, str | None]:
    """Return the call, and why its arguments cannot be read, if so."""
    args, fault = _read_args(asked)
    subagent = about.subagent_name if asked.subagent is None else asked.subagent
    call_id, name = asked.call_id[:MAX_NAME_CHARS], _name(asked)
    return ToolCall(call_id=call_id, index=index, name=name, args=args, subagent=subagent), fault


def _judge(
    agent: Agent, policy: Policy, ledger: Ledger, about: PolicyEvent, index: int, asked: RequestedCall
) -> tuple[BatchCall, Event]:
    call, fault = _read_call(about, index, asked)
    tool = agent.tools_by_name.get(asked.name)
    if tool is None:
        names = ", ".join(agent.tools_by_name) or "none"
        return _refuse(call, f"There is no tool named {call.name!r}. There are: {names}.")
    if fault is not None:
        return _refuse(call, fault)
    event = _with_call(agent, about, call)
    beside = ledger.judge_beside(event, tool.definition)
    decision = asking.settle_veto(ledger.judge_request(event), reversible=tool.definition.reversible)
    decision = put_question(tool.definition, call.args, decision)
    if decision.action is not Action.DENY:
        if misplaced := asking.find_misplaced(tool.definition, decision):
            return _refuse(call, misplaced)
        # the argument that a person gives may still be missing or wrong
        if fault := tool.find_fault(call.args, ignore=asking.target_of(decision)):
            return _refuse(call, f"The arguments do not fit {tool.name}: {fault}")
    judged = asking.describe_judged(call, decision, tool.definition, beside)
    return _follow(agent, policy, tool, call, decision), judged


def _with_context(agent: Agent, about: PolicyEvent) -> PolicyEvent:
    return about.model_copy(update={"context": {**about.context, **agent.context}})


def _with_call(agent: Agent, about: PolicyEvent, call: ToolCall) -> PolicyEvent:
    tool = agent.tools_by_name.get(call.name)
    named = {"tool_name": call.name, "tool_args": call.args, "subagent_name": call.subagent}
    return about.model_copy(update={**named, "definition": tool.definition.digest if tool is not None else None})


def _as_asked(agent: Agent, about: PolicyEvent, entry: BatchCall) -> PolicyEvent:
    """Return the event of a call, as of the time at which the agent asked if it was asked about."""
    event = _with_call(agent, about, entry.call)
    if entry.ask is not None and entry.ask.assessment is not None:
        event = event.model_copy(update={"readings": event.readings | recall_assessment(entry.ask.assessment)})
    asked_ms = entry.ask.judged_at_ms if entry.ask is not None else None
    return event if asked_ms is None else event.model_copy(update={"at_ms": asked_ms})


def _follow(agent: Agent, policy: Policy, tool: Tool, call: ToolCall, decision: PolicyDecision) -> BatchCall:
    rule_id, charges = decision.policy_id, decision.due_charges
    entry = BatchCall(call=call, action=decision.action, reason=decision.reason, rule_id=rule_id, charges=charges)
    if decision.action is Action.ALLOW:
        vetoed = VetoTerms(terms=decision.terms, rule_version=decision.rule_version) if decision.terms.veto else None
        return entry.model_copy(update={"granted": bool(decision.granted_by), "veto": vetoed})
    if decision.action is Action.DENY:
        return end_call(entry, _denial(policy, decision), Stop.DENIED)
    draft = asking.build_item(tool.definition, call, decision, agent.approval_timeout_s)
    return entry.model_copy(update={"ask": draft})


def _refuse(call: ToolCall, fault: str) -> tuple[BatchCall, Event]:
    fault = fault[: asking.MAX_REASON_CHARS]
    entry = BatchCall(call=call, action=Action.DENY, reason=fault)
    return end_call(entry, fault), asking.describe_action(
        call, Action.DENY, fault, {"policy_id": None, "matched_rules": []}
    )


def _denial(policy: Policy, decision: PolicyDecision) -> str:
    if decision.absolute or decision.restrained:
        return f"Denied by policy: {decision.reason}"
    rule = next((rule for rule in policy.rules if rule.rule_id == decision.policy_id), None)
    return f"Denied by policy: {rule.reason}" if rule is not None and rule.reason else "Denied by policy"


def _name(asked: RequestedCall) -> str:
    return asked.name[:MAX_NAME_CHARS] or "(no name)"


def _read_args(asked: RequestedCall) -> tuple[JsonObject, str | None]:
    text = asked.args_json.strip() or "{}"
    try:
        value = parse_json(text, _STATE)
    except SaysoError as error:
        why = error.message.replace("The body", "The text", 1)
        return {}, f"The arguments {text[:_EXCERPT_CHARS]!r} cannot be read. {why}"
    if not isinstance(value, dict):
        return {}, f"The arguments {text[:_EXCERPT_CHARS]!r} are not a JSON object. Send one, such as {{}}."
    return value, None


def _describe_model(agent: Agent) -> JsonObject:
    describe = getattr(agent.model, "describe", None)
    return dict(describe()) if callable(describe) else {}
