"""Which grant covers a call, and what the call spends of it."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from sayso.canonical_json import JsonObject, digest_json
from sayso.errors import SaysoError
from sayso.policy.grants.scopes import name_scope
from sayso.policy.memory.amounts import read_amount
from sayso.policy.memory.recalling import Wanted
from sayso.policy.rules import same_json
from sayso.records.memory.charges import Charge
from sayso.records.memory.grants import Grant
from sayso.records.memory.offers import Constraint, ConstraintKind

if TYPE_CHECKING:
    from sayso.policy.matching import PolicyEvent
    from sayso.policy.rules import PolicyRule


class Covering(NamedTuple):
    """The grant that lets a call run, and what the call takes of it."""

    grant: Grant
    charges: tuple[Charge, ...]


def want_grants(rule: "PolicyRule", event: "PolicyEvent") -> Wanted:
    """Return what to read to know the grants that may cover a call."""
    return Wanted(name_scope(rule.rule_id, event.agent), 0, grants=True)


def digest_rule(rule: "PolicyRule") -> str:
    """Return the digest of everything that a rule says."""
    return digest_json(rule.model_dump(mode="json"))


def find_grant(rule: "PolicyRule", event: "PolicyEvent") -> Covering | None:
    """Return the oldest grant that covers a call about which the rule asks, and has enough left for it."""
    reading = event.memory.get(name_scope(rule.rule_id, event.agent))
    if reading is None or not reading.grants:
        return None
    digest = digest_rule(rule)
    for grant in sorted(reading.grants, key=lambda one: (one.at_ms, one.id)):
        if grant.rule_digest == digest and covers(grant, rule.rule_id, event):
            charges = _charge(grant, event)
            if charges is not None:
                return Covering(grant, charges)
    return None


def covers(grant: Grant, rule_id: str, event: "PolicyEvent") -> bool:
    """Return whether a call is one that the grant names. What is unknown of a call is not covered."""
    about = (rule_id, event.agent, event.started_by, event.subagent_name, event.tool_name, event.definition)
    named = (grant.rule_id, grant.agent, grant.owner, grant.subagent, grant.tool, grant.definition)
    if about != named or len(grant.granters) < grant.people or grant.revoked_at_ms is not None:
        return False
    if not all(_holds(one, event.tool_args) for one in grant.constraints):
        return False
    return not grant.rest_digest or digest_rest(event.tool_args, grant.constraints) == grant.rest_digest


def digest_rest(args: JsonObject, constraints: tuple[Constraint, ...]) -> str:
    """Return the digest of the arguments without those that have a constraint."""
    rest: Any = deepcopy(args)
    for one in constraints:
        *outer, last = one.path.split(".")[1:]
        holder = follow(rest, outer)
        if isinstance(holder, dict):
            holder.pop(last, None)
    return digest_json(rest)


def follow(found: Any, steps: list[str]) -> Any:
    """Return what lies at the end of these keys, or None."""
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _holds(constraint: Constraint, args: JsonObject) -> bool:
    value = follow(args, constraint.path.split(".")[1:])
    if value is None:
        return False
    if constraint.kind is ConstraintKind.EQUAL:
        return same_json(value, constraint.value)
    if constraint.kind is ConstraintKind.ONE_OF:
        allowed = constraint.value
        return isinstance(allowed, list | tuple) and any(same_json(value, one) for one in allowed)
    try:
        most = constraint.value
        return isinstance(most, int) and read_amount(value, constraint.path) <= most
    except SaysoError:
        return False


def _charge(grant: Grant, event: "PolicyEvent") -> tuple[Charge, ...] | None:
    """Return what a call takes of the grant, or None if that is more than is left or unknown."""
    amounts = {grant.count_counter: (1, grant.count)}
    if grant.sum is not None:
        try:
            amount = read_amount(follow(event.tool_args, grant.sum.of.split(".")[1:]), grant.sum.of)
        except SaysoError:
            return None
        amounts[grant.sum_counter] = (amount, grant.sum.max)
    charges: list[Charge] = []
    for counter, (amount, most) in amounts.items():
        reading = event.memory.get(counter)
        if reading is None or (most is not None and reading.total + amount > most):
            return None
        charges.append(Charge(counter=counter, per_s=grant.per_s, amount=amount, most=most))
    return tuple(charges)
