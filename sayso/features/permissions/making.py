"""Grants from decisions, and mandates from approved plans: pure, and only what the rules as they are now permit."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.policy.counters.readings import read_amount, to_units, write_amount
from sayso.core.policy.engine import Policy
from sayso.core.policy.rule_keys import Grants, write_period
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.decisions import Actor, ActorKind, Decision, DecisionAction, DecisionRequest
from sayso.core.records.envelopes import (
    ALL_ARGUMENTS,
    Bounds,
    Constraint,
    ConstraintKind,
    CounterOffer,
    GrantRequest,
    Offered,
    check_free,
)
from sayso.core.records.items import Item, ItemKind
from sayso.core.records.permissions import MANDATE_PREFIX, Envelope, Grant, GrantSum, Mandate
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.text.redaction import MASK, redact
from sayso.core.transitions.deciding import decide, find_item, list_made
from sayso.errors import InvalidInput
from sayso.features.permissions.grants import digest_rest, digest_rule, find_granting, follow
from sayso.features.permissions.mandates import find_permitting

OFFER_S = 86_400
"""How long a counter-offer stands, unless the rule's grants are shorter."""


def find_grants(policy: Policy, item: Item) -> Grants | None:
    """Return what reviewers may grant beside an approval of the item; None if nothing."""
    rule = find_granting(policy.rules, item.terms.rule_id)
    apart = item.doubt is not None or item.mandate is not None or item.reverses is not None
    plain = item.kind is ItemKind.APPROVAL and not apart and not item.resembles
    same_rules = item.terms.rule_version == policy.version
    return rule.grants if rule is not None and plain and same_rules else None


def make_grant(
    policy: Policy,
    record: SuspensionRecord,
    item: Item,
    request: DecisionRequest,
    by: Actor,
    grant_id: str,
    now_ms: int,
) -> Grant | None:
    """Return what the decision grants, None if nothing; raises `InvalidInput` beyond what the rule allows."""
    asked = request.grant if request.action == "approve" else request.offer
    if asked is None:
        return None
    grants = find_grants(policy, item)
    rule = find_granting(policy.rules, item.terms.rule_id)
    if grants is None or rule is None:
        raise InvalidInput(
            f"The rule {item.terms.rule_id or 'default'} lets nobody grant such calls, or the rules have changed since "
            "it asked. Decide without a grant or an offer."
        )
    args = item.tool.args if request.args is None else request.args
    people = max(grants.people, item.terms.quorum.approve)
    given: dict[str, Any]
    if isinstance(asked, CounterOffer):
        given = _limit_offer(item, grants, asked, people, now_ms)
    else:
        given = limit_grant(rule, grants, asked, args, item.terms.secrets, now_ms)
    return Grant(
        id=grant_id,
        rule_id=rule.rule_id,
        rule_digest=digest_rule(rule),
        agent=record.run.agent,
        owner=record.run.owner,
        subagent=item.subagent,
        tool=item.tool.name,
        definition=item.tool.definition,
        at_ms=now_ms,
        people=people,
        each_of=item.terms.quorum.each_of,
        granters=(by,),
        suspension_id=record.id,
        item_id=item.item_id,
        reason=request.message or "",
        **given,
    )


def describe_offered(grant: Grant | None) -> Offered | None:
    """Return what a denial offers by this grant, for the agent."""
    if grant is None or not grant.offered:
        return None
    limits = " and ".join(describe_limit(limit) for limit in grant.constraints)
    text = (
        f"A call of {grant.tool} with {limits} and otherwise the same arguments runs once without asking, "
        f"until {iso_utc(grant.until_ms)}."
    )
    return Offered(grant_id=grant.id, until_ms=grant.until_ms, constraints=grant.constraints, text=text)


def describe_limit(limit: Constraint) -> str:
    """Return a constraint in English, such as `args.amount at most 200`."""
    if limit.kind is ConstraintKind.AT_MOST and isinstance(limit.value, int):
        return f"{limit.path} at most {write_amount(limit.value)}"
    values = limit.value if limit.kind is ConstraintKind.ONE_OF and isinstance(limit.value, list) else [limit.value]
    return f"{limit.path} {' or '.join(json.dumps(value, ensure_ascii=False) for value in values)}"


def list_limits(asked: Bounds) -> Iterator[Constraint]:
    """Yield the limits of a request."""
    for path, value in asked.equal.items():
        yield Constraint(path=path, kind=ConstraintKind.EQUAL, value=value)
    for path, most in asked.at_most.items():
        yield Constraint(path=path, kind=ConstraintKind.AT_MOST, value=to_units(most))
    for path, values in asked.one_of.items():
        yield Constraint(path=path, kind=ConstraintKind.ONE_OF, value=list(values))


def limit_grant(
    rule: PolicyRule, grants: Grants, asked: GrantRequest, args: JsonObject, secrets: Sequence[str], now_ms: int
) -> dict[str, Any]:
    """Return the limits of a grant for such calls, as fields of a `Grant`; raises `InvalidInput` beyond the rule's."""
    _check_secrets(args, secrets, asked, grants)
    try:
        check_free(asked.free, grants.by)
    except ValueError as error:
        raise InvalidInput(f"{str(error).partition(';')[0]} by the rule. Leave it out of `free`.") from error
    limits = _list_constraints(asked, args, grants)
    name = f"The rule {rule.rule_id} grants"
    if asked.for_s > grants.longest:
        longest, given = write_period(grants.longest), write_period(asked.for_s)
        raise InvalidInput(f"{name} at most {longest}, not {given}. Choose a shorter time.")
    if asked.count is not None and grants.count is not None and asked.count > grants.count:
        raise InvalidInput(f"{name} at most {grants.count} calls, not {asked.count}. Choose fewer.")
    if asked.sum is not None and grants.sum is None:
        raise InvalidInput(f"{name} no sum. Leave it out, or add `sum:` to the rule's `grants:`.")
    total = None
    if grants.sum is not None:
        most = to_units(asked.sum if asked.sum is not None else grants.sum.max)
        if most > to_units(grants.sum.max):
            limit = write_amount(to_units(grants.sum.max))
            raise InvalidInput(f"{name} at most {limit} in sum, not {write_amount(most)}. Choose less.")
        total = GrantSum(of=grants.sum.of, max=most)
    return {
        "constraints": limits,
        "rest_digest": "" if ALL_ARGUMENTS in asked.free else digest_rest(args, limits, asked.free),
        "free": asked.free,
        "until_ms": now_ms + asked.for_s * 1000,
        "count": asked.count if asked.count is not None else grants.count,
        "sum": total,
    }


def _limit_offer(item: Item, grants: Grants, asked: CounterOffer, people: int, now_ms: int) -> dict[str, Any]:
    if people > 1 or item.terms.quorum.deny > 1 or item.terms.quorum.each_of:
        raise InvalidInput("An offer is given by one person, and this rule needs more. Deny without an offer.")
    _check_secrets(item.tool.args, item.terms.secrets, asked, grants)
    limits = _list_constraints(asked, item.tool.args, grants)
    until_ms = now_ms + min(OFFER_S, grants.longest) * 1000
    total = GrantSum(of=grants.sum.of, max=to_units(grants.sum.max)) if grants.sum is not None else None
    rest = digest_rest(item.tool.args, limits)
    return {"constraints": limits, "until_ms": until_ms, "count": 1, "sum": total, "rest_digest": rest, "offered": True}


def _list_constraints(asked: Bounds, args: JsonObject, grants: Grants) -> tuple[Constraint, ...]:
    """Return the limits of the request, and the values that must stay as in the call."""
    limits = [*list_limits(asked)]
    for path in sorted(asked.at_most):  # no like call would be within a maximum of what is no number
        value = follow(args, path.split(".")[1:])
        try:
            read_amount(0 if value is None else value, path)
        except InvalidInput as error:
            raise InvalidInput(f"{error.message}, so it has no maximum. Limit it to a value instead.") from error
    limited = {limit.path for limit in limits}
    if not isinstance(asked, GrantRequest):
        _check_known(limited, args)
        return tuple(sorted(limits, key=lambda limit: limit.path))
    _check_known({*limited, *asked.same, *grants.by}, args)
    same = dict.fromkeys((*grants.by, *asked.same))
    for path in same:
        limits.append(Constraint(path=path, kind=ConstraintKind.EQUAL, value=follow(args, path.split(".")[1:])))
    summed = grants.sum.of if grants.sum is not None else ""
    bound = {*limited, *same, *asked.free}
    if summed and summed not in bound and follow(args, summed.split(".")[1:]) is not None:
        limits.append(Constraint(path=summed, kind=ConstraintKind.ANY))
    return tuple(sorted(limits, key=lambda limit: (limit.path, limit.kind)))


def _check_known(paths: Iterable[str], args: JsonObject) -> None:
    for path in sorted(paths):
        if follow(args, path.split(".")[1:]) is None:
            raise InvalidInput(f"The call has no {path}. Limit one of its own arguments.")


def _check_secrets(args: JsonObject, secrets: Sequence[str], asked: Bounds, grants: Grants) -> None:
    masked = redact(args, None, secrets).args
    same = (*asked.same, *grants.by) if isinstance(asked, GrantRequest) else ()
    for path in (*asked.equal, *asked.at_most, *asked.one_of, *same):
        steps = path.split(".")[1:]
        if any(follow(masked, steps[:end]) == MASK for end in range(1, len(steps) + 1)):
            raise InvalidInput(f"{path} is secret, and everybody can read a grant. Limit another argument.")


SUSPENSION_PREFIX = "sus_"


def name_mandate(suspension_id: str) -> str:
    """Return the id of the mandate that the item of a suspension proposes."""
    return suspension_id.replace(SUSPENSION_PREFIX, MANDATE_PREFIX, 1)


def name_suspension(mandate_id: str) -> str:
    """Return the id of the suspension whose item proposed a mandate."""
    return mandate_id.replace(MANDATE_PREFIX, SUSPENSION_PREFIX, 1)


def make_mandate(policy: Policy, record: SuspensionRecord, item: Item, now_ms: int) -> Mandate | None:
    """Return the mandate of an item that people approved, None for any other item.

    Raises `InvalidInput` if a rule that permitted it has changed since, so that its terms may be other ones.
    """
    outcome = item.outcome
    if item.mandate is None or outcome is None or not outcome.may_run or outcome.by.kind is not ActorKind.HUMAN:
        return None
    if (changed := find_changed(policy, item.mandate)) is not None:
        raise InvalidInput(
            f"The rule {changed} has changed since the plan was proposed. Deny it; the agent can ask again."
        )
    granters = (decision.by for decision in item.decisions if decision.action is DecisionAction.APPROVE)
    return draft_from(record, item, item.mandate, now_ms, tuple(dict.fromkeys(granters)))


def find_confining(record: SuspensionRecord, now_ms: int) -> Mandate | None:
    """Return the mandate that a new suspension puts in force without a person, None for any other suspension."""
    item = record.items[0] if record.items else None
    if item is None or item.mandate is None or item.outcome is None:
        return None
    by_rules = item.outcome.may_run and item.outcome.by.kind is ActorKind.POLICY
    return draft_from(record, item, item.mandate, now_ms) if by_rules else None


def draft_from(
    record: SuspensionRecord, item: Item, envelope: Envelope, at_ms: int, granters: tuple[Actor, ...] = ()
) -> Mandate:
    """Return the mandate of an item as if it were approved at this time."""
    run = record.run
    return Mandate(
        id=name_mandate(record.id),
        agent=run.agent,
        owner=run.owner,
        thread_id=run.thread_id,
        person=run.who.person if run.who is not None else None,
        envelope=envelope,
        at_ms=at_ms,
        until_ms=at_ms + envelope.for_s * 1000,
        granters=granters,
        suspension_id=record.id,
        item_id=item.item_id,
        title=run.title,
    )


def find_changed(policy: Policy, envelope: Envelope) -> str | None:
    """Return a rule that is not as it was when the envelope was proposed, or None."""
    for rule_id, digest in envelope.rules.items():
        rule = find_permitting(policy.live, rule_id)
        if rule is None or digest_rule(rule) != digest:
            return rule_id
    return None


def decide_with_grant(
    policy: Policy,
    record: SuspensionRecord,
    decision: Decision,
    request: DecisionRequest,
    now_ms: int,
    lost_ms: int = 0,
) -> Change:
    """Record a decision as `decide` does, and in the same change what it grants or offers, or the plan it approves.

    The false call of a drill grants nothing. Raises what `decide` raises, and `InvalidInput` for a grant that the rule
    does not allow.
    """
    change = decide(record, decision, now_ms, lost_ms)
    item, grant_id = find_item(record, decision.item_id), decision.id.replace("dec_", "gra_", 1)
    more = request.grant is not None or request.offer is not None
    if change.record is record or item.drill is not None:
        return change
    if item.mandate is not None:
        decided = decide(record, decision, now_ms, lost_ms, at_once=True).record
        mandate = make_mandate(policy, decided, find_item(decided, item.item_id), now_ms)
        if mandate is not None:
            return change._replace(mandate=mandate)
    if not more:
        return change
    by = list_made(find_item(change.record, decision.item_id))[-1].by
    grant = make_grant(policy, record, item, request, by, grant_id, now_ms)
    if grant is None:
        return change
    granted = decision.model_copy(update={"grant_id": grant.id, "offer": describe_offered(grant)})
    return decide(record, granted, now_ms, lost_ms)._replace(grant=grant)
