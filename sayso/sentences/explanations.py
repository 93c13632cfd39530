"""Explanations of decisions as plain data, for the API and the command line."""

from collections.abc import Callable

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.analysis.explaining import Explanation, Trial
from sayso.sentences.rules import describe_decision, describe_trial


def describe_explanation(found: Explanation, scrub: Callable[[str], str] = str) -> JsonObject:
    """Return the decision on a call, and every rule in the order of trial; `scrub` masks secrets in texts."""
    decision = found.decision
    rules: list[JsonValue] = [_describe_rule(one, scrub) for one in found.trials]
    return {
        "action": decision.action,
        "effect": describe_decision(decision),
        "reason": scrub(decision.reason),
        "rule_id": decision.policy_id,
        "rule_version": decision.rule_version,
        "error": scrub(decision.error) if decision.error else None,
        "absolute": decision.absolute,
        "resembles": [*decision.resembles],
        "rules": rules,
    }


def _describe_rule(trial: Trial, scrub: Callable[[str], str]) -> JsonObject:
    return {
        "rule_id": trial.rule.rule_id,
        "action": trial.rule.action,
        "match": trial.match,
        "part": trial.part,
        "saw": trial.saw,
        "would": trial.would,
        "sentence": scrub(describe_trial(trial)),
    }
