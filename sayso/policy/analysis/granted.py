"""The grant of a case: what a person has granted beside the approval of an earlier call."""

from pydantic import Field

from sayso.errors import InvalidInput
from sayso.policy.engine import Policy, PolicyEvent
from sayso.policy.grants.covering import digest_rule, find_granting
from sayso.policy.grants.making import limit_grant
from sayso.policy.grants.scopes import list_counters, name_scope
from sayso.policy.memory.keys import Period
from sayso.policy.memory.ledger import NO_READINGS, remember
from sayso.policy.memory.readings import Reading, Readings
from sayso.policy.rules import Action
from sayso.records.decisions import Actor, ActorKind
from sayso.records.memory.bounds import GrantRequest
from sayso.records.memory.grants import Grant

GRANTED_KEYS = ("call", "for", "ago", *(name for name in GrantRequest.model_fields if name != "for_s"))
_UNKNOWN = "unknown"


class Granted(GrantRequest):
    """What a person granted beside the approval of `event`, `ago` seconds before the call of the case."""

    event: PolicyEvent
    for_s: Period = Field(validation_alias="for")
    ago: Period = 0


def identify(event: PolicyEvent) -> PolicyEvent:
    """Return a call with a requester and a definition of its tool, which a grant names."""
    return event.model_copy(update={"started_by": event.started_by or _UNKNOWN, "definition": _UNKNOWN})


def read_granted(policy: Policy, granted: Granted, event: PolicyEvent) -> Readings:
    """Return what a call reads of grants, if no other was made; raises `InvalidInput` if this one cannot be made."""
    grant = _make(policy, granted, (event.at_ms or 0) - granted.ago * 1000)
    if granted.ago >= granted.for_s:
        return NO_READINGS
    counters = {counter.counter: Reading() for counter in list_counters(grant)}
    return {name_scope(grant.rule_id, grant.agent): Reading(grants=(grant,))} | counters


def _make(policy: Policy, granted: Granted, at_ms: int) -> Grant:
    call = identify(granted.event)
    decision = policy.judge(remember(policy, call))
    rule = find_granting(policy.rules, decision.policy_id)
    asks = decision.action is Action.REQUEST_APPROVAL and not decision.error and not decision.resembles
    if not asks or rule is None or rule.grants is None:
        by = f"rule {decision.policy_id}" if decision.policy_id is not None else "the default"
        raise InvalidInput(f"{by} lets nobody grant such calls")
    limits = limit_grant(rule, rule.grants, granted, call.tool_args, decision.terms.secrets, at_ms)
    return Grant(
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
