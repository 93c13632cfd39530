"""What assessors are asked about a call, and the scrutiny that their answers add to a decision."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sayso.core.canonical_json import canonical_json, digest_json
from sayso.core.policy.counters.readings import Reading, Wanted
from sayso.core.policy.rules import ASKING, Action
from sayso.core.policy.strictness import guard_terms, strictest_terms
from sayso.core.records.judgements import Assessment, Level, Question
from sayso.core.records.terms import RuleTerms
from sayso.core.text.redaction import redact

if TYPE_CHECKING:
    from sayso.core.policy.events import PolicyEvent
    from sayso.core.policy.rules import PolicyRule


def name_assessment(assessor: str, event: "PolicyEvent") -> str:
    """Return the name of an assessor's answer about a call; other arguments have another name."""
    return digest_json(["assess", assessor, event.agent, event.tool_name, event.tool_args])[:32]


def want_assessment(rule: "PolicyRule", event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield what to ask the rule's assessor about a call, unless its answer is known."""
    if rule.assess is None:
        return
    key = name_assessment(rule.assess.by, event)
    if key not in event.readings:
        about = {
            "assessor": rule.assess.by,
            "rule": rule.rule_id,
            "tool": event.tool_name,
            "args": redact(event.tool_args, None, rule.terms.secrets).args,
            "subagent": event.subagent_name,
            **{name: getattr(event, name) for name in ("agent", "started_by", "run_id", "step", "context")},
        }
        yield Wanted(key, 0, question=Question(key, rule.assess.by, canonical_json(about)))


def recall_assessment(assessment: Assessment | None) -> dict[str, Reading]:
    """Return the readings of an event with what an assessor said when its call was asked."""
    return {} if assessment is None else {assessment.key: Reading(assessment=assessment)}


def find_assessment(rule: "PolicyRule", event: "PolicyEvent") -> Assessment | None:
    """Return what the rule's assessor said about a call; None if that is unknown."""
    reading = event.readings.get(name_assessment(rule.assess.by, event)) if rule.assess is not None else None
    return reading.assessment if reading is not None else None


def try_assessment(rule: "PolicyRule", event: "PolicyEvent") -> bool | str:
    """Return True for a rule whose assessor answered or that has none, or why the rule cannot be evaluated."""
    if rule.assess is None or find_assessment(rule, event) is not None:
        return True
    return f"assess: what {rule.assess.by} says about this call is not known here"


def weigh_assessment(rule: "PolicyRule", event: "PolicyEvent", decided: dict[str, Any]) -> dict[str, Any]:
    """Return what a rule decides, with the scrutiny of its assessor's level: it asks, and its terms are stricter."""
    assessment = find_assessment(rule, event)
    if rule.assess is None or assessment is None:
        return decided
    decided = decided | {"assessment": assessment}
    added = [*rule.assess.list_scrutiny(assessment.level)]
    if not added:
        return decided
    says = rule.reason or (decided["reason"] if rule.action in ASKING else None)  # "says allow" would be wrong
    rating = f"The assessor {assessment.assessor} rates this call {assessment.level}."
    why = (says and f"{says.removesuffix('.')}.", rating, *(scrutiny.reason for scrutiny in added))
    reason = " ".join(sentence for sentence in why if sentence)
    action = rule.action if rule.action in ASKING else Action.REQUEST_APPROVAL
    terms = guard_terms(strictest_terms([rule.terms, *(scrutiny.add_to(rule.terms) for scrutiny in added)]))
    return decided | {"action": action, "reason": reason, "terms": terms, "scrutinized": True}


def list_strictest(rules: Iterable["PolicyRule"]) -> Iterator[RuleTerms]:
    """Yield the terms under which rules could ask about a call at most."""
    for rule in rules:
        added = () if rule.assess is None else rule.assess.list_scrutiny(Level.HIGH)
        yield strictest_terms([rule.terms, *(scrutiny.add_to(rule.terms) for scrutiny in added)])
