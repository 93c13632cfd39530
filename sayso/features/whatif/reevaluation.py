"""Recorded calls of a run as the rules saw them, judged again by the engine that judges live calls."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import Reading, list_counters, list_mandate_counters, name_scope, name_scope_of
from sayso.core.policy.decisions import BESIDE, find_misplaced, put_question, settle_veto
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent, describe_origin
from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import ActorKind
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.items import Item
from sayso.core.records.permissions import Grant, Mandate
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.language import mark
from sayso.core.text.redaction import MASK
from sayso.wire.rulebook import Effect

NOT_COUNTED = mark("A rule remembers other calls than the rules of that time did.")


class Rejudged(Immutable):
    """What rules would do with one recorded call; `approvals` is how many people would have to approve it."""

    effect: Effect
    rule_id: str | None = None
    reason: str = ""
    error: str | None = None
    approvals: int = 1


class JudgedBeside(Immutable):
    """What a candidate in shadow would have done with a call; `missing` says why that is not known."""

    rule_version: str
    judged: Rejudged | None = None
    missing: str = ""


class RecordedCall(Immutable):
    """A call that rules judged, with the facts that they saw.

    `missing` names what is no longer known of it; the call cannot be judged again without it. `verdict` is the outcome
    of an item that was asked for: approved, denied, or empty; `by_person` says whether people decided it, and
    `look_times_ms` has how long each of them looked, None where it was not measured. `secrets` are the paths of its
    secret arguments. `beside` is what the candidate in shadow at that time said.
    """

    event: PolicyEvent
    action: Action
    rule_id: str | None = None
    verdict: str = ""
    by_person: bool = False
    look_times_ms: tuple[int | None, ...] = ()
    missing: str = ""
    at_ms: int = 0
    suspension_id: str = ""
    item_id: str = ""
    secrets: tuple[str, ...] = ()
    beside: JudgedBeside | None = None


class Changed(NamedTuple):
    """A recorded call on which the rules now decide otherwise."""

    call: RecordedCall
    now: Rejudged


Tools = Mapping[str, Sequence[ToolDefinition]]
"""The tools of each registered agent, by its name."""


def effect_of(action: Action) -> Effect:
    """Return what an action does with a call."""
    if action in ASKING:
        return Effect.ASKED
    return Effect.ALLOWED if action is Action.ALLOW else Effect.DENIED


def rejudge(policy: Policy, calls: Sequence[RecordedCall], tools: Tools) -> Iterator[Rejudged | None]:
    """Yield what the rules would do with each call; None where a fact is missing."""
    definitions = {(agent, tool.name): tool for agent, own in tools.items() for tool in own}
    for call in calls:
        definition = definitions.get((call.event.agent, call.event.tool_name or ""))
        yield judge_without_effect(policy, call.event, definition) if not call.missing else None


def judge_without_effect(
    policy: Policy, event: PolicyEvent, definition: ToolDefinition | None, *, registered: bool = True
) -> Rejudged | None:
    """Return what rules would do with a call; None where it is unknown what a counter held."""
    # Where no grant or mandate is recorded, none was in force.
    wanted = (need for need in policy.list_wanted(event) if not need.grants and need.tool is None)
    if any(need.counter not in event.readings for need in wanted):
        return None
    decision = policy.judge(event)
    decision = settle_veto(decision, reversible=registered and definition is not None and definition.reversible)
    if definition is not None and registered:
        decision = put_question(definition, event.tool_args, decision)
    if definition is not None and (misplaced := find_misplaced(definition, decision)):
        decision = decision.model_copy(update={"action": Action.DENY, "reason": misplaced})
    return Rejudged(
        effect=effect_of(decision.action),
        rule_id=decision.policy_id,
        reason=decision.reason,
        error=decision.error,
        approvals=sum(part.quorum.approve for part in decision.terms.stages or (decision.terms,)),
    )


class Comparison(NamedTuple):
    """Calls by their effect then and now, by what is missing to judge them again, and how many have the same."""

    changed: Mapping[tuple[Effect, Effect], tuple[Changed, ...]]
    missing: Mapping[str, tuple[RecordedCall, ...]]
    same: Counter[Effect]


def compare(calls: Sequence[RecordedCall], judged: Sequence[Rejudged | None]) -> Comparison:
    """Return what other rules would have done, beside what was done."""
    changed: dict[tuple[Effect, Effect], list[Changed]] = {}
    missing: dict[str, list[RecordedCall]] = {}
    same: Counter[Effect] = Counter()
    for call, now in zip(calls, judged, strict=True):
        before = effect_of(call.action)
        if now is None:
            missing.setdefault(call.missing or NOT_COUNTED, []).append(call)
        elif now.effect is before:
            same[before] += 1
        else:
            changed.setdefault((before, now.effect), []).append(Changed(call, now))
    order = [(before, now) for now in Effect for before in Effect if before is not now]
    return Comparison(
        {pair: tuple(changed[pair]) for pair in order if pair in changed},
        {fact: tuple(calls) for fact, calls in sorted(missing.items())},
        same,
    )


READ = frozenset((EventType.TOOL_BATCH_STARTED, EventType.POLICY_DECISION, EventType.RUN_PAUSED))
"""The kinds of trail events from which recorded calls are read; the others may be left out."""

NOT_KEPT = mark("The arguments were not kept.")
MASKED = mark("Secret arguments are masked in the record.")
ERASED = mark("The contents of the call were erased.")


def list_suspended(trail: Sequence[TrailEntry]) -> list[str]:
    """Return the ids of the suspensions that the trail names."""
    suspended = (_find_suspended(entry) for entry in trail)
    return [suspension_id for suspension_id in suspended if suspension_id]


def list_calls(run: RunRef, trail: Sequence[TrailEntry], records: Mapping[str, SuspensionRecord]) -> list[RecordedCall]:
    """Return the judged tool calls of the run, the latest first; `records` are its suspensions by id."""
    calls: list[RecordedCall] = []
    step, suspended = 0, ""
    steps, progress, before = {}, {}, None
    for entry in trail:
        if entry.type == EventType.TOOL_BATCH_STARTED and isinstance(entry.data.get("step"), int):
            step = entry.data["step"]
        if entry.type == EventType.TOOL_BATCH_STARTED:
            before = entry.data.get("progress")
        steps[entry.seq], progress[entry.seq] = step, before
    for entry in reversed(trail):
        suspended = _find_suspended(entry) or suspended
        if is_judged(entry):
            facts = {**describe_origin(run, None), "progress": progress[entry.seq]}
            call = _read_call(run, entry, steps[entry.seq], records.get(suspended), facts)
            calls += [call] if call is not None else []
        if entry.type == EventType.TOOL_BATCH_STARTED:
            suspended = ""  # an earlier batch did not lead to this suspension
    return calls


def is_judged(entry: TrailEntry) -> bool:
    """Return whether rules judged the tool call of an event; a call of an unknown tool has no version of the rules."""
    data = entry.data
    return entry.type == EventType.POLICY_DECISION and bool(data.get("rule_version")) and "tool_name" in data


def _find_suspended(entry: TrailEntry) -> str:
    payload = entry.data.get("payload") if entry.type == EventType.RUN_PAUSED else None
    suspension_id = payload.get("suspension_id") if isinstance(payload, dict) else None
    return suspension_id if isinstance(suspension_id, str) else ""


def _read_call(
    run: RunRef, entry: TrailEntry, step: int, record: SuspensionRecord | None, facts: dict[str, Any]
) -> RecordedCall | None:
    """Return the call of an event; None for one that another version of Sayso wrote otherwise."""
    data = entry.data
    about, items = (data.get("index"), data["tool_name"]), record.items if record is not None else ()
    item = next((item for item in items if (item.index, item.tool.name) == about), None)
    outcome = item.outcome if item is not None and data.get("action") in ASKING else None
    args = item.tool.args if item is not None else data.get("args")
    event: dict[str, Any] = {
        **facts,
        "run_id": run.id,
        "thread_id": run.thread_id,
        "step": record.step if record is not None and item is not None else step,
        "agent": run.agent,
        "tool_name": data["tool_name"],
        "tool_args": args if isinstance(args, dict) else {},
        "subagent_name": item.subagent if item is not None else data.get("subagent"),
        "context": run.facts,
        "claimed": run.claimed,
        "at_ms": data.get("at_ms", entry.at_ms),
    }
    try:
        whole = entry.erased_by is None
        grant = Grant.model_validate(data["grant"]) if whole and "grant" in data else None
        mandate = Mandate.model_validate(data["mandate"]) if whole and "mandate" in data else None
        if item is not None:
            event["definition"] = item.tool.definition
        elif grant is not None:
            event["definition"] = grant.definition
        elif mandate is not None and mandate.envelope.tools:
            event["definition"] = mandate.envelope.tools[0].definition
        event["readings"] = _recall(data, grant, mandate)
        decisions = item.decisions if item is not None else ()
        people = [decision for decision in decisions if decision.by.kind is ActorKind.HUMAN]
        look_times = tuple(decision.shown.look_ms if decision.shown is not None else None for decision in people)
        return RecordedCall(
            event=PolicyEvent.model_validate(event),
            action=Action(str(data.get("action"))),
            rule_id=data.get("policy_id"),
            verdict=outcome.verdict.value if outcome is not None else "",
            by_person=outcome is not None and outcome.by.kind is ActorKind.HUMAN,
            look_times_ms=look_times,
            missing=_find_missing(entry, args, item),
            at_ms=entry.at_ms,
            suspension_id=record.id if record is not None and item is not None else "",
            item_id=item.item_id if item is not None else "",
            secrets=item.terms.secrets if item is not None else (),
            beside=JudgedBeside.model_validate(data[BESIDE]) if BESIDE in data else None,
        )
    except (ValidationError, ValueError):
        return None


def _recall(data: JsonObject, grant: Grant | None, mandate: Mandate | None) -> dict[str, Any]:
    """Return what was read when the call was judged. The counters of its grant and mandate had enough left."""
    remembered, assessment = data.get("remembered"), data.get("assessment")
    rows = [row for row in remembered if isinstance(row, dict)] if isinstance(remembered, list) else []
    readings: dict[str, Any] = {
        str(row.get("counter")): {"total": row.get("total"), "samples": row.get("samples", 0)} for row in rows
    }
    if isinstance(assessment, dict):
        readings[str(assessment.get("key"))] = {"assessment": assessment}
    if grant is not None:
        readings[name_scope(grant.rule_id, grant.agent)] = Reading(grants=(grant,))
        readings |= {counter.counter: Reading() for counter in list_counters(grant)}
    if mandate is not None:
        readings[name_scope_of(mandate)] = Reading(mandates=(mandate,))
        parts = (list_mandate_counters(mandate, tool.tool) for tool in mandate.envelope.tools)
        readings |= {counter.counter: Reading() for part in parts for counter in part}
    return readings


def _find_missing(entry: TrailEntry, args: JsonValue, item: Item | None) -> str:
    if entry.erased_by is not None or (item is not None and item.erasure is not None):
        return ERASED
    if not isinstance(args, dict):
        return NOT_KEPT
    return MASKED if item is None and MASK in json.dumps(args, ensure_ascii=False) else ""
