"""Which grant covers a call, and what the call spends of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.counters.readings import Wanted, name_scope, read_amount
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.functions.addresses import is_within, read_url
from sayso.core.policy.rules import Action, same_json
from sayso.core.records.envelopes import ALL_ARGUMENTS, Constraint, ConstraintKind
from sayso.core.records.judgements import Charge
from sayso.core.records.permissions import Grant
from sayso.errors import SaysoError

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent
    from sayso.core.policy.rules import PolicyRule


_MOST_NAMED = 5
_MAY_BE_NULL = (ConstraintKind.EQUAL, ConstraintKind.ONE_OF)


class Covering(NamedTuple):
    """The grant that lets a call run, and what the call takes of it."""

    grant: Grant
    charges: tuple[Charge, ...]


def want_grants(rule: "PolicyRule", event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield what to read to know the grants that may cover a call; nothing for a rule without them."""
    if rule.grants is not None and rule.is_live:
        yield Wanted(name_scope(rule.rule_id, event.agent), 0, grants=True)


def find_granting(rules: Iterable["PolicyRule"], rule_id: str | None) -> "PolicyRule | None":
    """Return the live rule of this id if it lets people grant later calls."""
    return next((rule for rule in rules if rule.rule_id == rule_id and rule.is_live and rule.grants is not None), None)


def apply_grant(rules: Iterable["PolicyRule"], event: "PolicyEvent", decision: PolicyDecision) -> PolicyDecision:
    """Allow a call that its rule asks about without any doubt, and that a grant of this rule covers."""
    doubt = decision.error or decision.in_doubt or decision.resembles or decision.scrutinized
    if doubt or decision.action is not Action.REQUEST_APPROVAL or not event.readings:
        return decision
    rule = find_granting(rules, decision.policy_id)
    if rule is None:
        return decision
    covering = find_grant(rule, event)
    if covering is None:
        return explain_uncovered(rule, event, decision)
    grant, charges = covering
    reason = f"Grant {grant.id}, given by {' and '.join(granter.id for granter in grant.granters)}, allows it."
    update = {"action": Action.ALLOW, "reason": reason, "request_payload": None}
    return decision.model_copy(update={**update, "grant": grant, "allowance": charges})


def digest_rule(rule: "PolicyRule") -> str:
    """Return the digest of everything that a rule says."""
    return digest_json(rule.model_dump(mode="json"))


def find_grant(rule: "PolicyRule", event: "PolicyEvent") -> Covering | None:
    """Return the oldest grant that covers a call about which the rule asks, and has enough left for it."""
    reading = event.readings.get(name_scope(rule.rule_id, event.agent))
    if reading is None or not reading.grants:
        return None
    digest = digest_rule(rule)
    for grant in sorted(reading.grants, key=lambda grant: (grant.at_ms, grant.id)):
        if grant.rule_digest == digest and covers(grant, rule.rule_id, event):
            charges = _charge(grant, event)
            if charges is not None:
                return Covering(grant, charges)
    return None


def covers(grant: Grant, rule_id: str, event: "PolicyEvent") -> bool:
    """Return whether a call is one that the grant names, and people have granted it and nobody has ended it."""
    return is_granted(grant) and names_call(grant, rule_id, event)


def is_granted(grant: Grant) -> bool:
    """Return whether people have granted it and nobody has ended it."""
    return grant.is_confirmed and grant.revoked_at_ms is None and grant.denial is None


def names_call(grant: Grant, rule_id: str, event: "PolicyEvent") -> bool:
    """Return whether a call is one that the grant names. What is unknown of a call is not covered."""
    about = (rule_id, event.agent, event.started_by, event.subagent_name, event.tool_name, event.definition)
    named = (grant.rule_id, grant.agent, grant.owner, grant.subagent, grant.tool, grant.definition)
    args = event.tool_args
    if about != named or not all(holds(limit, args) for limit in grant.constraints):
        return False
    if ALL_ARGUMENTS in grant.free:
        return True
    if grant.is_from_before:
        return not strip_arguments(args, _list_named(grant))
    return digest_rest(args, grant.constraints, grant.free) == grant.rest_digest


def _list_named(grant: Grant) -> list[str]:
    """Return the arguments that a grant names: those with a limit, those that are free, and the summed one."""
    summed = [grant.sum.of] if grant.sum is not None else []
    return [*(limit.path for limit in grant.constraints), *grant.free, *summed]


def explain_uncovered(rule: "PolicyRule", event: "PolicyEvent", decision: PolicyDecision) -> PolicyDecision:
    """Return the decision, with the grant in force that would cover the call but for its other arguments."""
    reading, digest = event.readings.get(name_scope(rule.rule_id, event.agent)), digest_rule(rule)
    near = (
        grant
        for grant in (reading.grants if reading is not None else ())
        if grant.rule_digest == digest
        and is_granted(grant)
        and not names_call(grant, rule.rule_id, event)
        and names_call(grant.model_copy(update={"free": (ALL_ARGUMENTS,)}), rule.rule_id, event)
    )
    grant = next(near, None)
    if grant is None:
        return decision
    because = "the arguments that it does not limit must stay as they were"
    if not grant.keeps_others:
        others = [f"args.{name}" for name in strip_arguments(event.tool_args, _list_named(grant))]
        because = f"it does not name {' and '.join(others[:_MOST_NAMED])}"
    if grant.is_from_before:
        because = f"{because}, and grants of its age no longer cover what they do not name. Grant such calls again"
    reason = f"{decision.reason.removesuffix('.')}. Grant {grant.id} does not cover it: {because}."
    return decision.model_copy(update={"reason": reason})


def strip_arguments(args: JsonObject, paths: Iterable[str]) -> JsonObject:
    """Return the arguments without those at these paths, and without objects that hold nothing else."""
    rest: Any = deepcopy(args)
    for path in paths:
        *outer, last = path.split(".")[1:]
        holders = [rest]
        for step in outer:
            holders.append(follow(holders[-1], [step]))
        if not isinstance(holders[-1], dict):
            continue
        holders[-1].pop(last, None)
        for holder, step in zip(reversed(holders[:-1]), reversed(outer), strict=True):
            if holder.get(step) == {}:
                del holder[step]
    return dict(rest)


def digest_rest(args: JsonObject, constraints: tuple[Constraint, ...], free: tuple[str, ...] = ()) -> str:
    """Return the digest of the arguments without those that have a constraint, and without the free ones."""
    rest: Any = deepcopy(args)
    for limit in constraints:
        *outer, last = limit.path.split(".")[1:]
        holder = follow(rest, outer)
        if isinstance(holder, dict):
            holder.pop(last, None)
    return digest_json(strip_arguments(rest, free))


def follow(value: Any, steps: list[str]) -> Any:
    """Return what lies at the end of these keys, or None."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def holds(constraint: Constraint, args: JsonObject) -> bool:
    """Return whether an argument is within its limit; a missing or unreadable one is not."""
    *outer, last = constraint.path.split(".")[1:]
    holder = follow(args, outer)
    if not isinstance(holder, dict) or last not in holder:
        return False
    value = holder[last]
    if value is None and constraint.kind not in _MAY_BE_NULL:
        return False
    try:
        return _CHECKS[constraint.kind](value, constraint.value, constraint.path)
    except SaysoError:
        return False


def _are_at(value: Any, hosts: JsonValue) -> bool:
    """Whether all values are HTTP URLs of these hosts, without credentials; `*.` covers all hosts below."""
    urls = [read_url(url) for url in (value if isinstance(value, list) else [value])]
    entries = [*map(str, hosts)] if isinstance(hosts, list | tuple) else []
    return bool(urls) and all(
        url["scheme"] in ("http", "https")
        and not url["has_user"]
        and any(
            str(url["host"]).endswith(entry[1:]) if entry.startswith("*.") else url["host"] == entry
            for entry in entries
        )
        for url in urls
    )


_CHECKS: dict[ConstraintKind, Callable[[Any, Any, str], bool]] = {
    ConstraintKind.EQUAL: lambda value, wanted, _: same_json(value, wanted),
    ConstraintKind.ONE_OF: lambda value, allowed, _: (
        isinstance(allowed, list | tuple) and any(same_json(value, choice) for choice in allowed)
    ),
    ConstraintKind.AT_MOST: lambda value, most, path: isinstance(most, int) and read_amount(value, path) <= most,
    ConstraintKind.ANY: lambda *_: True,
    ConstraintKind.HOSTS: lambda value, hosts, _: _are_at(value, hosts),
    ConstraintKind.WITHIN: lambda value, folder, _: is_within(value, str(folder)),
}


def _charge(grant: Grant, event: "PolicyEvent") -> tuple[Charge, ...] | None:
    """Return what a call takes of the grant, or None if that is more than is left or unknown."""
    amounts = {grant.count_counter: (1, grant.count)}
    if grant.sum is not None:
        try:
            amount = read_amount(follow(event.tool_args, grant.sum.of.split(".")[1:]), grant.sum.of)
        except SaysoError:
            return None
        amounts[grant.sum_counter] = (amount, grant.sum.max)
    return charge(amounts, grant.per_s, event)


def charge(
    amounts: Mapping[str, tuple[int, int | None]], per_s: int, event: "PolicyEvent"
) -> tuple[Charge, ...] | None:
    """Return the charges of a call: by counter an amount and the most; None where one is exceeded or unknown."""
    charges: list[Charge] = []
    for counter, (amount, most) in amounts.items():
        reading = event.readings.get(counter)
        if reading is None or (most is not None and reading.total + amount > most):
            return None
        charges.append(Charge(counter=counter, per_s=per_s, amount=amount, most=most))
    return tuple(charges)
