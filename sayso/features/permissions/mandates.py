"""Which mandate covers a call, what the call spends of it, and that calls outside of all are asked about or denied."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sayso.core.policy.counters.readings import Wanted, name_mandate_scope, read_amount
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import ASKING, Action
from sayso.core.policy.strictness import guard_terms
from sayso.core.records.envelopes import ALL_ARGUMENTS, may_miss
from sayso.core.records.judgements import Charge
from sayso.core.records.permissions import Mandate, MandatedTool, Outside
from sayso.core.records.terms import RuleTerms
from sayso.errors import SaysoError
from sayso.features.permissions.grants import charge, digest_rule, follow, holds, strip_arguments

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent
    from sayso.core.policy.rules import PolicyRule


def find_scope(event: "PolicyEvent") -> str | None:
    """Return the name under which the mandates for a call are kept; None where its owner or conversation is unknown."""
    if event.started_by is None or event.thread_id is None or event.tool_name is None:
        return None
    return name_mandate_scope(event.started_by, event.agent, event.thread_id)


def want_mandates(event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield what to read to know the mandates that may cover a call."""
    scope = find_scope(event)
    if scope is not None:
        yield Wanted(scope, 0, tool=event.tool_name)


class MandateCovering(NamedTuple):
    """The mandate that lets a call run, its part that covers the call, and what the call takes of it."""

    mandate: Mandate
    tool: MandatedTool
    charges: tuple[Charge, ...]


def apply_mandates(
    rules: Iterable["PolicyRule"], event: "PolicyEvent", decision: PolicyDecision, terms: RuleTerms
) -> PolicyDecision:
    """Allow a call inside a mandate in force, ask about or deny one outside of all; without mandates change nothing.

    A denial stays. A call that a rule asks about runs only if the mandate was approved under this rule as it is now.
    One to which an assessor adds scrutiny is asked about inside a mandate, too, and counts for it.
    `terms` are for calls to ask about that the rules would have allowed.
    """
    scope = find_scope(event)
    reading = event.readings.get(scope) if scope is not None else None
    here = (event.started_by, event.agent, event.thread_id)
    mandates = [
        mandate
        for mandate in sorted(reading.mandates if reading is not None else (), key=lambda held: (held.at_ms, held.id))
        if (mandate.owner, mandate.agent, mandate.thread_id) == here
        and mandate.envelope.run_id in ("", event.run_id)
        and mandate.revoked_at_ms is None
    ]
    if not mandates or decision.action is Action.DENY:
        return decision
    covering = _find(rules, mandates, event, decision)
    if covering is None:
        return _ask_planned(mandates, event, decision, terms) or _apply_outside(mandates, decision, terms)
    mandate, tool, charges = covering
    if decision.scrutinized:
        reason = f"{decision.reason.removesuffix('.')}. Mandate {mandate.id} plans it, and does not let it run alone."
        update = {"reason": reason, "mandate": mandate.cut(tool), "charges": (*decision.charges, *charges)}
        return decision.model_copy(update=update)
    by = f", approved by {' and '.join(granter.id for granter in mandate.granters)}," if mandate.granters else ""
    reason = f"Mandate {mandate.id}{by} allows it."
    update = {"action": Action.ALLOW, "reason": reason, "request_payload": None, "mandate": mandate.cut(tool)}
    return decision.model_copy(update={**update, "allowance": (*decision.allowance, *charges)})


def find_permitting(rules: Iterable["PolicyRule"], rule_id: str | None) -> "PolicyRule | None":
    """Return the live rule of this id if its calls may be covered by mandates."""
    return next((rule for rule in rules if rule.rule_id == rule_id and rule.is_live and rule.mandates), None)


def covers_call(tool: MandatedTool, event: "PolicyEvent") -> bool:
    """Return whether a call is one that this part of a mandate names. What is unknown of a call is not covered."""
    about = (event.tool_name, event.definition, event.subagent_name or "")
    if about != (tool.tool, tool.definition, tool.subagent):
        return False
    if not all(
        holds(limit, event.tool_args)
        or (may_miss(limit) and follow(event.tool_args, limit.path.split(".")[1:]) is None)
        for limit in tool.constraints
    ):
        return False
    paths = (*(limit.path for limit in tool.constraints), *tool.unlimited)
    return ALL_ARGUMENTS in tool.free or not strip_arguments(event.tool_args, paths)


def _find(
    rules: Iterable["PolicyRule"], mandates: Sequence[Mandate], event: "PolicyEvent", decision: PolicyDecision
) -> MandateCovering | None:
    digest, person = None, event.who.person if event.who is not None else None
    if decision.action is not Action.ALLOW and not decision.scrutinized:
        doubt = decision.error or decision.in_doubt or decision.resembles
        rule = find_permitting(rules, decision.policy_id)
        if doubt or rule is None or decision.action is not Action.REQUEST_APPROVAL:
            return None
        digest = digest_rule(rule)
    # A plan that nobody approved only takes away: it covers nothing beside one that people approved.
    for mandate in [mandate for mandate in mandates if mandate.granters] or mandates:
        if mandate.person != person:
            continue  # its reviewers decided for another person
        if digest is not None and mandate.envelope.rules.get(decision.policy_id or "") != digest:
            continue
        for tool in mandate.envelope.tools:
            charges = _charge(mandate, tool, event) if not tool.ask and covers_call(tool, event) else None
            if charges is not None:
                return MandateCovering(mandate, tool, charges)
    return None


def _ask_planned(
    mandates: Sequence[Mandate], event: "PolicyEvent", decision: PolicyDecision, terms: RuleTerms
) -> PolicyDecision | None:
    """Ask about a call that a mandate plans for a person to decide; None for any other call."""
    parts = ((mandate, tool) for mandate in mandates for tool in mandate.envelope.tools if tool.ask)
    planned = next((mandate.cut(tool) for mandate, tool in parts if covers_call(tool, event)), None)
    if planned is None:
        return None
    reason = f"{decision.reason.removesuffix('.')}. Mandate {planned.id} plans it and leaves it to a person."
    update: dict[str, Any] = {"reason": reason, "mandate": planned, "allowance": ()}
    if decision.action is Action.ALLOW:
        update |= {"action": Action.REQUEST_APPROVAL, "terms": guard_terms(terms)}
    return decision.model_copy(update=update)


def _apply_outside(mandates: Sequence[Mandate], decision: PolicyDecision, terms: RuleTerms) -> PolicyDecision:
    """Ask about a call outside of all mandates, or deny it if one of them says so."""
    ids = " and ".join(mandate.id for mandate in mandates)
    reason = f"{decision.reason.removesuffix('.')}. It is outside mandate {ids}."
    update: dict[str, Any] = {"reason": reason, "mandate": mandates[0].cut(), "allowance": ()}
    denying = next((mandate.cut() for mandate in mandates if mandate.envelope.outside is Outside.DENY), None)
    if denying is not None:
        reason = f"{reason} While {denying.id} is in force, such calls are denied."
        update |= {"action": Action.DENY, "reason": reason, "request_payload": None, "mandate": denying}
    elif decision.action in ASKING:
        update["terms"] = guard_terms(decision.terms)
    else:
        update |= {"action": Action.REQUEST_APPROVAL, "terms": guard_terms(terms)}
    return decision.model_copy(update=update)


def _charge(mandate: Mandate, tool: MandatedTool, event: "PolicyEvent") -> tuple[Charge, ...] | None:
    """Return what a call takes of the mandate, or None if that is more than is left or unknown."""
    amounts: dict[str, tuple[int, int | None]] = {mandate.count_counter: (1, mandate.envelope.count)}
    if tool.count is not None:
        amounts[mandate.name_counter(tool, "count")] = (1, tool.count)
    if tool.sum is not None:
        try:
            amount = read_amount(follow(event.tool_args, tool.sum.of.split(".")[1:]), tool.sum.of)
        except SaysoError:
            return None
        if tool.sum.max is not None:
            amounts[mandate.name_counter(tool, "sum")] = (amount, tool.sum.max)
        if mandate.envelope.sum is not None:
            amounts[mandate.sum_counter] = (amount, mandate.envelope.sum)
    return charge(amounts, mandate.per_s, event)
