"""Judging recorded calls again under other rules, with the engine that judges live calls."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from sayso.policy.asking import find_misplaced
from sayso.policy.engine import Action, Policy, PolicyEvent
from sayso.policy.questions import put_question
from sayso.policy.rules import ASKING
from sayso.records.base import Immutable
from sayso.records.tool_calls import ToolDefinition
from sayso.text.language import mark

NOT_COUNTED = mark("A rule remembers other calls than the rules of that time did.")


class Effect(StrEnum):
    """What rules do with a call."""

    ALLOWED = "allowed"
    ASKED = "asked"
    DENIED = "denied"


class Rejudged(Immutable):
    """What rules would do with one recorded call; `error` is what they could not evaluate.

    `approvals` is how many people would have to approve it if it is asked about. An erasure leaves no reason.
    """

    effect: Effect
    rule_id: str | None = None
    reason: str = ""
    error: str | None = None
    approvals: int = 1


class JudgedBeside(Immutable):
    """What a candidate in shadow would have done with a call; `missing` says why that is not known.

    `rule_version` is that of the candidate's rules.
    """

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


def _forgets(event: PolicyEvent, policy: Policy) -> bool:
    """Whether it is unknown what a counter held. Where no grant or mandate is recorded, none was in force."""
    wanted = (need for need in policy.list_wanted(event) if not need.grants and need.tool is None)
    return any(need.counter not in event.memory for need in wanted)


def rejudge(policy: Policy, calls: Sequence[RecordedCall], tools: Tools) -> Iterator[Rejudged | None]:
    """Yield what the rules would do with each call; None where a fact is missing."""
    definitions = {(agent, tool.name): tool for agent, own in tools.items() for tool in own}
    for call in calls:
        definition = definitions.get((call.event.agent, call.event.tool_name or ""))
        yield judge_without_effect(policy, call.event, definition) if not call.missing else None


def judge_without_effect(
    policy: Policy, event: PolicyEvent, definition: ToolDefinition | None, *, registered: bool = True
) -> Rejudged | None:
    """Return what rules would do with a call; None where it is unknown what a counter held.

    Only the tool of a `registered` definition may be a question of the agent.
    """
    if _forgets(event, policy):
        return None
    decision = policy.judge(event)
    if definition is not None and registered:
        decision = put_question(definition, event.tool_args, decision)
    if definition is not None and (misplaced := find_misplaced(definition, decision)):
        decision = decision.model_copy(update={"action": Action.DENY, "reason": misplaced})
    return Rejudged(
        effect=effect_of(decision.action),
        rule_id=decision.policy_id,
        reason=decision.reason,
        error=decision.error,
        approvals=decision.terms.quorum.approve,
    )


class Comparison(NamedTuple):
    """What would change: calls by their effect then and now, and calls that cannot be judged again by what is missing.

    `same` counts the calls with the same effect.
    """

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
