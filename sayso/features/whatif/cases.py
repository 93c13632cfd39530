"""How the cases beside the rules end: each call as if nothing else had happened before, but for what it was granted."""

from sayso.core.policy.counters.charging import NO_READINGS, remember
from sayso.core.policy.counters.readings import Reading, Readings, list_counters, name_scope
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.cases import ASK, DEFAULT, Case, Granted
from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.permissions import Grant
from sayso.errors import InvalidInput, SaysoError
from sayso.features.permissions.grants import digest_rule, find_granting
from sayso.features.permissions.making import limit_grant
from sayso.features.whatif.explaining import Explanation, Match, explain

_UNKNOWN = "unknown"


def identify(event: PolicyEvent) -> PolicyEvent:
    """Return a call with a requester and a definition of its tool, which a grant names."""
    return event.model_copy(update={"started_by": event.started_by or _UNKNOWN, "definition": _UNKNOWN})


def read_granted(policy: Policy, granted: Granted, event: PolicyEvent) -> Readings:
    """Return what a call reads of grants, if no other was made; raises `InvalidInput` if this one cannot be made."""
    at_ms = (event.at_ms or 0) - granted.ago * 1000
    call = identify(granted.event)
    decision = policy.judge(remember(policy, call))
    rule = find_granting(policy.rules, decision.policy_id)
    asks = decision.action is Action.REQUEST_APPROVAL and not decision.error and not decision.resembles
    if not asks or rule is None or rule.grants is None:
        by = f"rule {decision.policy_id}" if decision.policy_id is not None else "the default"
        raise InvalidInput(f"{by} lets nobody grant such calls")
    limits = limit_grant(rule, rule.grants, granted, call.tool_args, decision.terms.secrets, at_ms)
    grant = Grant(
        id="gra_case",
        rule_id=rule.rule_id,
        rule_digest=digest_rule(rule),
        agent=call.agent,
        owner=call.started_by or _UNKNOWN,
        subagent=call.subagent_name,
        tool=call.tool_name or "",
        definition=call.definition or _UNKNOWN,
        at_ms=at_ms,
        granters=(Actor(id="reviewer", kind=ActorKind.HUMAN),),
        suspension_id="sus_case",
        item_id="i1",
        **limits,
    )
    if granted.ago >= granted.for_s:
        return NO_READINGS
    counters = {counter.counter: Reading() for counter in list_counters(grant)}
    return {name_scope(grant.rule_id, grant.agent): Reading(grants=(grant,))} | counters


class CaseResult(Immutable):
    """How a case ended. `fault` says what differs; it is empty for a case that is as expected."""

    case: Case
    rule_id: str | None
    action: Action
    fault: str = ""


def place_case(policy: Policy, case: Case) -> tuple[PolicyEvent, str]:
    """Return the call of a case with its past, and why nobody could grant what the case says, if so."""
    event, readings, fault = case.event, NO_READINGS, ""
    if case.granted is not None:
        event = identify(event)
        try:
            readings = read_granted(policy, case.granted, event)
        except SaysoError as error:
            fault = f"granted: {error.message}"
    return remember(policy, event, case.after, readings), fault


def run_cases(policy: Policy, cases: list[Case]) -> list[CaseResult]:
    """Return how each case ends under the rules."""
    results: list[CaseResult] = []
    for case in cases:
        event, ungranted = place_case(policy, case)
        explanation = explain(policy, event)
        decision = explanation.decision
        done = decision.action in ASKING if case.expect == ASK else decision.action == case.expect
        right = case.rule is None or decision.policy_id == (None if case.rule == DEFAULT else case.rule)
        fault = ungranted or ("" if done and right else _describe_fault(case, explanation))
        results.append(CaseResult(case=case, rule_id=decision.policy_id, action=decision.action, fault=fault))
    return results


def _describe_fault(case: Case, explanation: Explanation) -> str:
    """Return what differs, such as `expected allow, but rule large says request_approval: args.amount > 100`."""
    decision = explanation.decision
    by = f"rule {decision.policy_id}" if decision.policy_id is not None else "the default"
    wanted = "the default" if case.rule == DEFAULT else f"rule {case.rule}"
    expected = case.expect if case.rule is None else f"{case.expect} by {wanted}"
    if decision.error is not None and decision.policy_id is None:
        return f"expected {expected}, but a person is asked, because {decision.error}"
    trial = next((trial for trial in explanation.trials if trial.match is Match.DECIDES), None)
    when = trial.rule.condition.when if trial is not None else None
    saw = ", ".join(f"{name} is {value!r}" for name, value in trial.saw.items()) if trial is not None else ""
    because = f": {when}{f' ({saw})' if saw else ''}" if when is not None else ""
    return f"expected {expected}, but {by} says {decision.action}{because}"
