"""Proposing a mandate: the envelope of a plan, the terms under which people approve it, and its item."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.counters.readings import to_units, write_amount
from sayso.core.policy.decisions import PolicyDecision, without_confirmation
from sayso.core.policy.engine import Policy
from sayso.core.policy.functions.addresses import check_root
from sayso.core.policy.managers import settle_managers
from sayso.core.policy.matching import is_about_agent, may_be_about
from sayso.core.policy.rule_keys import Grants
from sayso.core.policy.rules import Action, PolicyRule, Subject, check_quorum
from sayso.core.policy.strictness import guard_terms, strictest_terms
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.envelopes import Constraint, ConstraintKind
from sayso.core.records.items import Answer, ItemDraft, ItemTool, PresetOutcome, Prompt
from sayso.core.records.permissions import MANDATE, Envelope, MandatedTool, MandateSum, Outside, Plan, PlannedCalls
from sayso.core.records.suspensions import RunRef
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import redact
from sayso.errors import InvalidInput, SaysoError
from sayso.features.permissions.grants import digest_rule
from sayso.features.permissions.making import list_limits

Definitions = Mapping[str, ToolDefinition]
"""The definitions of the agent's tools, by name."""

_CONFINES = PresetOutcome(
    verdict=Verdict.APPROVED,
    by=Actor(id="policy", kind=ActorKind.POLICY),
    message="The plan lets nothing run that the rules do not allow.",
)


class _Permit(NamedTuple):
    """A rule that lets mandates cover its calls, what it allows them, and the planned calls that it may cover."""

    rule: PolicyRule
    grants: Grants
    calls: tuple[PlannedCalls, ...]


def draft_mandate(policy: Policy, run: RunRef, plan: Plan, definitions: Definitions, of_run: str = "") -> ItemDraft:
    """Return the item that asks people about a plan; raises `InvalidInput` for one that the rules do not permit.

    Its terms are the strictest of all rules that it would silence. With `of_run` it covers that run alone. A plan
    that silences no rule and denies all other calls needs nobody: it lets nothing run that the rules do not allow.
    """
    permits = _find_permits(policy, run, plan)
    for permit in permits:
        _check_permit(permit, plan)
    rules = {permit.rule.rule_id: digest_rule(permit.rule) for permit in permits}
    envelope = build_envelope(plan, definitions, rules, of_run)
    _check_secrets(plan, definitions, permits)
    args = plan.model_dump(mode="json", exclude_defaults=True)
    decision = _decide(policy, run, plan, permits)
    return ItemDraft(
        call_id=MANDATE,
        tool=ItemTool(name=MANDATE, args=args, definition=digest_json(envelope.model_dump(mode="json"))),
        prompt=Prompt(title="Plan to approve", reason=decision.reason),
        allowed=(Answer.APPROVE, Answer.DENY),
        terms=decision.terms,
        rule_id=decision.policy_id,
        rule_version=policy.version,
        mandate=envelope,
        preset=_CONFINES if not permits and plan.outside is Outside.DENY else None,
    )


def build_envelope(plan: Plan, definitions: Definitions, rules: Mapping[str, str], of_run: str = "") -> Envelope:
    """Return the envelope of a plan; raises `InvalidInput` for a tool without a definition or a wrong folder."""
    tools = tuple(_build_tool(calls, place, definitions) for place, calls in enumerate(plan.tools))
    most = to_units(plan.sum) if plan.sum is not None else None
    return Envelope(
        for_s=plan.for_s,
        count=plan.count,
        sum=most,
        tools=tools,
        rules=dict(rules),
        run_id=of_run,
        outside=plan.outside,
    )


def _build_tool(calls: PlannedCalls, place: int, definitions: Definitions) -> MandatedTool:
    definition = definitions.get(calls.tool)
    if definition is None:
        raise InvalidInput(f"tools[{place}]: the agent has no tool {calls.tool!r}. It has: {', '.join(definitions)}.")
    limits = [*list_limits(calls)]
    limits += [Constraint(path=path, kind=ConstraintKind.HOSTS, value=[*hosts]) for path, hosts in calls.hosts.items()]
    try:
        limits += [
            Constraint(path=path, kind=ConstraintKind.WITHIN, value=check_root(folder))
            for path, folder in calls.within.items()
        ]
    except SaysoError as error:
        raise InvalidInput(f"tools[{place}].within: {error.message}") from error
    total = None
    if calls.sum is not None:
        total = MandateSum(of=calls.sum.of, max=to_units(calls.sum.max) if calls.sum.max is not None else None)
    return MandatedTool(
        tool=calls.tool,
        definition=definition.digest,
        subagent=calls.subagent,
        constraints=tuple(sorted(limits, key=lambda limit: (limit.path, limit.kind))),
        free=calls.free,
        count=calls.count,
        sum=total,
        place=place,
        ask=calls.ask,
    )


def _find_permits(policy: Policy, run: RunRef, plan: Plan) -> tuple[_Permit, ...]:
    """Return the rules that permit the plan; raises `InvalidInput` for calls that nothing would let run."""
    about = [rule for rule in policy.live if rule.covers(Subject.TOOL_CALL) and is_about_agent(rule, run.agent)]
    permitting = [rule for rule in about if rule.mandates is not None]
    for place, calls in enumerate(plan.tools):
        if calls.ask:
            continue
        rules = [rule for rule in about if may_be_about(rule, calls.tool)]
        allowed = policy.default is Action.ALLOW or any(rule.action is Action.ALLOW for rule in rules)
        if not allowed and not any(rule in permitting for rule in rules):
            raise InvalidInput(
                f"tools[{place}]: no rule lets a mandate cover calls of {calls.tool}. Leave it out of the plan, or add "
                "`mandates:` to the rule that asks about it."
            )
    if not permitting:
        raise InvalidInput(
            "No rule in force permits mandates. Add `mandates:` to the rules whose calls they may cover."
        )
    silent = [calls for calls in plan.tools if not calls.ask]
    pairs = ((rule, tuple(calls for calls in silent if may_be_about(rule, calls.tool))) for rule in permitting)
    return tuple(_Permit(rule, rule.mandates, calls) for rule, calls in pairs if calls and rule.mandates is not None)


def _check_permit(permit: _Permit, plan: Plan) -> None:
    name, grants = f"The rule {permit.rule.rule_id} lets a mandate", permit.grants
    if plan.for_s > grants.longest:
        raise InvalidInput(f"{name} last at most {grants.longest} s, not {plan.for_s} s. Choose a shorter time.")
    count = min(plan.count, sum(calls.count or plan.count for calls in permit.calls))
    if grants.count is not None and count > grants.count:
        raise InvalidInput(f"{name} cover at most {grants.count} calls, not {count}. Plan fewer.")
    for calls in permit.calls:
        free = sorted({*permit.grants.by} - {*calls.equal, *calls.one_of})
        if free:
            raise InvalidInput(f"{name} cover {calls.tool} only with its {free[0]} named. Add it to equal or one_of.")
        summed = permit.grants.sum
        if summed is not None and (calls.sum is None or calls.sum.of != summed.of):
            raise InvalidInput(f"{name} cover {calls.tool} only with a sum. Add `sum` of {summed.of} to these calls.")
    if grants.sum is None:
        return
    sums = [calls.sum.max for calls in permit.calls if calls.sum is not None]
    known = [amount for amount in sums if amount is not None]
    total = sum(known, Decimal()) if len(known) == len(sums) else None
    most = min((amount for amount in (total, plan.sum) if amount is not None), default=None)
    if most is None or most > grants.sum.max:
        limit = write_amount(to_units(grants.sum.max))
        planned = write_amount(to_units(most)) if most is not None else "any amount"
        raise InvalidInput(f"{name} cover at most {limit} of {grants.sum.of} in sum, not {planned}. Plan less.")


def _check_secrets(plan: Plan, definitions: Definitions, permits: Iterable[_Permit]) -> None:
    """Refuse limits on secret arguments: everybody can read a mandate."""
    secrets = [path for permit in permits for path in permit.rule.terms.secrets]
    for calls in plan.tools:
        for path in calls.paths:
            args: JsonObject = {}
            *outer, last = path.split(".")[1:]
            holder = args
            for step in outer:
                holder = holder.setdefault(step, {})  # type: ignore[assignment]
            holder[last] = calls.equal.get(path, "limit")
            if redact(args, definitions[calls.tool].parameters, secrets).args != args:
                raise InvalidInput(f"{path} of {calls.tool} is secret, and everybody can read a plan. Make it free.")


def _decide(policy: Policy, run: RunRef, plan: Plan, permits: tuple[_Permit, ...]) -> PolicyDecision:
    """Return the decision that asks about a plan, under the strictest terms of the rules that it would silence."""
    strictest = strictest_terms([_raise_quorum(permit) for permit in permits] or [policy.terms])
    terms = guard_terms(without_confirmation(strictest))  # a plan runs no call that somebody must confirm
    try:
        check_quorum(terms)
    except ValueError as error:
        if len(permits) == 1:
            raise InvalidInput(
                f"Nobody can approve a plan under the rule {permits[0].rule.rule_id}: {error}. "
                "Correct `people` of its `mandates:`, or its reviewers."
            ) from error
        raise InvalidInput(f"Nobody can approve this plan as a whole: {error}. Split it.") from error
    names = ", ".join(permit.rule.rule_id for permit in permits)
    others = "denied" if plan.outside is Outside.DENY else "asked about"
    reason = f"A plan: calls inside it run without asking, and all others are {others} while it lasts."
    reason = f"{reason} It covers calls about which these rules ask: {names}." if names else reason
    fields: dict[str, Any] = {"action": Action.REQUEST_APPROVAL, "reason": reason, "terms": terms}
    first = permits[0].rule.rule_id if permits else None
    decision = PolicyDecision(**fields, policy_id=first, rule_version=policy.version)
    return settle_managers(decision, decision.terms, run.who, policy.terms)


def _raise_quorum(permit: _Permit) -> RuleTerms:
    terms = permit.rule.terms
    approve = max(terms.quorum.approve, permit.grants.people)
    return terms.model_copy(update={"quorum": terms.quorum.model_copy(update={"approve": approve})})
