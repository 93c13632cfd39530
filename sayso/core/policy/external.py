"""Evaluation of calls that a client makes, and of arguments that a reviewer edits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.policy import decisions
from sayso.core.policy.budgets import complete
from sayso.core.policy.counters.assessing import recall_assessment
from sayso.core.policy.counters.charging import NO_READINGS, Ledger
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent, make_event
from sayso.core.policy.matching import may_be_about
from sayso.core.policy.rules import ASKING, Action, same_json
from sayso.core.policy.strictness import guard_terms, is_stricter, state_terms, strictest_terms
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import Progress, RunRef, SuspensionRecord
from sayso.core.records.terms import LONGEST_WAIT_S, Fallback, FallbackAction, RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import PolicyForbids


@dataclass(frozen=True)
class ExternalCall:
    """A client's tool call, with the definition of its tool, which is `known` if a worker registered it.

    An answer counts for the client within `within_s` alone. `revises` is the item, as `suspension/item`, of which the
    client says that this is a new version.
    """

    call: ToolCall
    definition: ToolDefinition
    known: bool = False
    step: int = 1
    within_s: int | None = None
    revises: str = ""


def fit_within(draft: ItemDraft, within_s: int | None) -> ItemDraft:
    """Return the draft with terms that end within this time, if it is limited."""
    return draft if within_s is None else draft.model_copy(update={"terms": fit_terms(draft.terms, within_s)})


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


def describe_calls(
    run: RunRef,
    calls: Sequence[ExternalCall],
    step: int = 1,
    progress: Progress | None = None,
    at_ms: int | None = None,
) -> list[PolicyEvent]:
    """Return the calls as the rules see them; rules that read the time cannot be evaluated without `at_ms`."""
    return [
        make_event(
            run,
            step,
            progress,
            tool_name=external.call.name,
            tool_args=external.call.args,
            subagent_name=external.call.subagent,
            at_ms=at_ms,
            definition=external.definition.digest,
        )
        for external in calls
    ]


@complete
def list_wanted(policy: Policy, described: Sequence[PolicyEvent]) -> list[Wanted]:
    """Return the counters that evaluating the calls reads."""
    return [wanted for event in described for wanted in policy.list_wanted(event)] if policy.remembering else []


def counts_by_progress(policy: Policy) -> bool:
    """Return whether the counters of a call may depend on its turn, or on what its run or thread did before."""
    return any(rule.condition.when is not None or rule.condition.after is not None for rule in policy.remembering)


@complete
def evaluate_calls(
    policy: Policy,
    run: RunRef,
    calls: Sequence[ExternalCall],
    step: int = 1,
    readings: Readings = NO_READINGS,
    progress: Progress | None = None,
    described: Sequence[PolicyEvent] | None = None,
) -> tuple[tuple[ItemDraft, ...], tuple[Event, ...]]:
    """Return the items of the calls, with presets for those the policy decides, and the events to record.

    `readings` hold the counters that `list_wanted` returns. `described` is what `describe_calls` returned; without it
    the time of the calls is unknown.
    """
    ledger = Ledger(policy, readings)
    events = [describe_begun(run, [external.call.name for external in calls], step, progress)]
    drafts: list[ItemDraft] = []
    for external, event in zip(calls, described or describe_calls(run, calls, step, progress), strict=True):
        beside = ledger.judge_beside(event, external.definition, registered=external.known)
        decision = decisions.settle_veto(ledger.judge_request(event), reversible=False)
        if external.known:
            decision = decisions.put_question(external.definition, external.call.args, decision)
        if misplaced := decisions.find_misplaced(external.definition, decision):
            decision = decision.model_copy(update={"action": Action.DENY, "reason": misplaced})
        drafts.append(fit_within(decisions.build_item(external.definition, external.call, decision), external.within_s))
        events.append(decisions.describe_judged(external.call, decision, external.definition, beside))
    return tuple(drafts), tuple(events)


def describe_begun(run: RunRef, names: list[str], step: int, progress: Progress | None = None) -> Event:
    """Return the event with which the trail of a client's calls begins."""
    data: JsonObject = {"tool_call_count": len(names), "step": step, "tool_names": [*names]}
    data |= {"agent": run.agent, "owner": run.owner, **run.describe_who()} | decisions.describe_progress(progress)
    return Event(EventType.TOOL_BATCH_STARTED, data)


class FinalJudgement(NamedTuple):
    """The rules' decision on a reviewer's arguments, and the new item if they need another decision.

    The rules do not evaluate a call in doubt.
    """

    decision: decisions.PolicyDecision | None
    renewed: ItemDraft | None


@complete
def judge_final(
    policy: Policy,
    record: SuspensionRecord,
    item: Item,
    args: JsonObject,
    definition: ToolDefinition | None,
    readings: Readings = NO_READINGS,
) -> FinalJudgement:
    """Evaluate the arguments that a reviewer would have run; raises `PolicyForbids`.

    They need another decision when another rule applies, the terms are stricter, or the rules cannot evaluate them.
    """
    if item.doubt is not None:
        return FinalJudgement(None, None)
    judged = Ledger(policy, readings).judge(describe_item(record, item, args))
    if definition is not None and record.resume.mode != "poll":
        judged = decisions.put_question(definition, args, judged)
    name = item.tool.name
    if judged.action is not Action.DENY and judged.in_doubt is Action.DENY:
        raise PolicyForbids(
            f"The rules might deny {name} with these final arguments, but cannot evaluate them: {judged.error}. "
            "Use the types that the rules compare, or deny the item."
        )
    misplaced = decisions.find_misplaced(definition, judged) if definition is not None else None
    if judged.action is Action.DENY or misplaced:
        why = (misplaced or judged.reason or "").removesuffix(".")
        raise PolicyForbids(
            f"The rule {judged.policy_id or 'default'} denies {name} with these final arguments"
            f"{f': {why}' if why else ''}. Change them, or deny the item.",
            policy_id=judged.policy_id,
        )
    other = judged.policy_id not in (None, item.terms.rule_id) or judged.in_doubt is not None
    again = not same_json(args, item.tool.args) and (other or is_stricter(judged.terms, item.terms))
    if judged.action not in ASKING or not again:
        return FinalJudgement(judged, None)
    if definition is None:
        raise PolicyForbids(
            f"The definition of {item.tool.name} is no longer stored, so these arguments cannot be evaluated. "
            "Approve the original arguments, or deny the item."
        )
    if judged.in_doubt is not None or _changes_type(item.tool.args, args):
        judged = judged.model_copy(
            update={"terms": guard_terms(strictest_terms([judged.terms, state_terms(item.terms)]))}
        )
    call = ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=args, subagent=item.subagent)
    return FinalJudgement(judged, decisions.build_item(definition, call, judged))


def _changes_type(before: Any, after: Any) -> bool:
    """Whether an argument changes its JSON type: a rule that compares it may not notice."""
    if isinstance(before, dict) and isinstance(after, dict):
        return any(_changes_type(before[key], after[key]) for key in before.keys() & after.keys())
    if isinstance(before, list) and isinstance(after, list):
        return any(map(_changes_type, before, after))
    return _type_of(before) != _type_of(after)


def _type_of(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if number else type(value).__name__


def describe_item(record: SuspensionRecord, item: Item, args: JsonObject) -> PolicyEvent:
    """Return the event of an item's call with these arguments, as of the time at which the agent asked."""
    asked_ms = item.judged_at_ms or record.created_at_ms
    call = {"tool_name": item.tool.name, "tool_args": args, "subagent_name": item.subagent}
    known = {"definition": item.tool.definition, "readings": recall_assessment(item.assessment)}
    return make_event(record.run, record.step, record.progress, **call, **known, at_ms=asked_ms)


def decides_alike(policy: Policy, name: str) -> bool:
    """Return whether the rules decide the same on equal calls of this tool, whenever those start.

    They do not if a rule that may be about it remembers calls, asks an assessor or allows grants, if mandates may cover
    any tool, or if a rule that nothing lifts reads the time of the start.
    """
    if not policy.remembering and not policy.limits_start:
        return True
    at_start = (rule for rule in policy.live if rule.absolute and rule.reads_time)
    return not (policy.mandating or any(may_be_about(rule, name) for rule in (*policy.remembering, *at_start)))
