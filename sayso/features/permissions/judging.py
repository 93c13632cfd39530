"""The stage of permissions in a judgement, and what calls teach about grants on probation."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sayso.core.policy.counters.readings import Wanted, name_scope
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import Action, Subject
from sayso.core.records.permissions import Denial, Grant, Learning
from sayso.features.permissions.grants import apply_grant, digest_rule, find_granting, names_call, want_grants
from sayso.features.permissions.mandates import apply_mandates, want_mandates

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent
    from sayso.core.policy.rules import PolicyRule
    from sayso.core.policy.stages import Rulebook


class Permissions:
    """Mandates precede grants, and neither lets run what an assessor adds scrutiny to."""

    def want(self, rules: "Rulebook", event: "PolicyEvent", covering: Sequence["PolicyRule"]) -> Iterator[Wanted]:
        """Yield the mandates of the conversation, and the grants of the rules that cover the call."""
        if rules.mandating and event.subject is Subject.TOOL_CALL:
            yield from want_mandates(event)
        for rule in covering:
            yield from want_grants(rule, event)

    def apply(self, rules: "Rulebook", event: "PolicyEvent", decision: PolicyDecision) -> PolicyDecision:
        """Return the decision after mandates and grants, with what it teaches."""
        if rules.mandating and event.subject is Subject.TOOL_CALL:
            decision = apply_mandates(rules.live, event, decision, rules.terms)
        if decision.mandate is None:
            decision = apply_grant(rules.live, event, decision)
        return note_learning(rules.live, event, decision)


STAGE = Permissions()


def learns(rules: Iterable["PolicyRule"]) -> bool:
    """Return whether a live rule learns grants."""
    return any(rule.is_live and rule.grants is not None and rule.grants.learn is not None for rule in rules)


def note_learning(rules: Iterable["PolicyRule"], event: "PolicyEvent", decision: PolicyDecision) -> PolicyDecision:
    """Return the decision with what it teaches, if its rule learns grants and asks without any doubt.

    The limits of a grant on calls and sums count from the moment at which it takes force, so they play no part.
    Outside of the mandates of a run, and under an assessor's scrutiny, no grant allows anything.
    """
    doubt = decision.error or decision.in_doubt or decision.resembles
    if doubt or decision.action is not Action.REQUEST_APPROVAL or not event.readings:
        return decision
    rule = find_granting(rules, decision.policy_id)
    if rule is None or rule.grants is None or rule.grants.learn is None:
        return decision
    reading = event.readings.get(name_scope(rule.rule_id, event.agent))
    if reading is None:
        return decision
    digest = digest_rule(rule)
    grants = reading.grants if decision.mandate is None and not decision.scrutinized else ()
    trying = (grant for grant in grants if grant.on_probation and grant.rule_digest == digest)
    would = tuple(sorted(grant.id for grant in trying if names_call(grant, rule.rule_id, event)))
    return decision.model_copy(update={"learning": Learning(rule_digest=digest, would_allow=would)})


def find_learned(grants: Iterable[Grant], rule_id: str, event: "PolicyEvent") -> tuple[Grant, ...]:
    """Return the learned grants among these that name a call, on probation or in force."""
    return tuple(grant for grant in grants if grant.learned is not None and names_call(grant, rule_id, event))


def suspend_grants(grants: Iterable[Grant], denial: Denial) -> tuple[Grant, ...]:
    """Return the grants, suspended by a denial."""
    return tuple(grant.model_copy(update={"denial": denial}) for grant in grants)
