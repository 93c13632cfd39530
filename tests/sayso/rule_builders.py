"""Builders of rules, events and policies."""

from typing import Any

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action, PolicyRule, RuleCondition
from sayso.core.records.terms import RuleTerms

UNSURE: dict[str, Any] = {"when": "args.amount > 100"}
"""A condition that cannot be evaluated without an amount."""


def rule(rule_id: str, action: str = "deny", *, priority: int = 100, **parts: Any) -> PolicyRule:
    condition = {name: parts.pop(name) for name in tuple(parts) if name in RuleCondition.model_fields}
    return PolicyRule.model_validate(
        {"rule_id": rule_id, "action": action, "priority": priority, "condition": condition} | parts
    )


def event(tool_name: str | None = "refund", /, **parts: Any) -> PolicyEvent:
    args = {name: parts.pop(name) for name in tuple(parts) if name not in PolicyEvent.model_fields}
    return PolicyEvent(**({"run_id": "run_1", "agent": "support", "tool_name": tool_name, "tool_args": args} | parts))


def policy(*rules: PolicyRule, default: Action = Action.ALLOW, terms: RuleTerms | None = None) -> Policy:
    return Policy(rules=rules, default=default, terms=terms or RuleTerms())
