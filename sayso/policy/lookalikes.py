"""Evaluation of a tool under the names in rules that its own name looks like, so that no spelling evades a rule."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from sayso.policy.asking import PolicyDecision
from sayso.policy.matching import MAX_ERROR_CHARS
from sayso.policy.rules import ASKING, Action, PolicyRule, RequestPayload
from sayso.policy.strictness import STRICTNESS, guard_terms, strictest_terms
from sayso.records.memory.charges import Charge
from sayso.records.tool_names import find_alike


def unname(rule: PolicyRule) -> PolicyRule:
    """Return the rule without its tool names; its other conditions stay."""
    condition = rule.condition.model_copy(update={"tool_name": None, "tool_name_pattern": None, "tool_names": None})
    return rule.model_copy(update={"condition": condition})


def may_be_about(rule: PolicyRule, name: str) -> bool:
    """Return whether the rule covers tools of this name, or of one that looks like it."""
    names = rule.condition.tools
    return not names or any(fnmatchcase(name, pattern) for pattern in names) or bool(find_alike(frozenset(names), name))


def merge_payloads(asking: Sequence[PolicyRule]) -> RequestPayload | None:
    """Return the payload of the first rule, without editing when any rule forbids it."""
    payloads = [rule.request_payload for rule in asking if rule.action is Action.REQUEST_APPROVAL]
    first = asking[0].request_payload if asking and asking[0].action is Action.REQUEST_APPROVAL else None
    if all(payload is None or payload.allow_edit for payload in payloads):
        return first
    return (first or RequestPayload()).model_copy(update={"allow_edit": False})


def take_stricter(own: PolicyDecision, other: PolicyDecision, resembles: tuple[str, ...]) -> dict[str, Any]:
    """Return the stricter of the decisions on a tool's own name and on the names it looks like.

    If both ask, a rule's payload precedes the default's, and the terms satisfy both.
    """
    both = own.action in ASKING and other.action in ASKING
    by_default = own.policy_id is None and own.in_doubt is None
    stricter = (STRICTNESS[other.action], other.absolute) > (STRICTNESS[own.action], own.absolute)
    taken = other if (both and by_default) or stricter else own
    update: dict[str, Any] = {
        "rule_version": own.rule_version,
        "matched_rules": tuple(dict.fromkeys((*own.matched_rules, *other.matched_rules))),
        "error": "; ".join(decision.error for decision in (own, other) if decision.error)[:MAX_ERROR_CHARS] or None,
        "in_doubt": max((own.in_doubt, other.in_doubt), key=lambda doubt: -1 if doubt is None else STRICTNESS[doubt]),
        "resembles": resembles,
        "computed": {**own.computed, **other.computed},
        "remembered": tuple(dict.fromkeys((*own.remembered, *other.remembered))),
        "charges": _merge_charges((*own.charges, *other.charges)),
        "allowance": own.allowance,
    }
    if taken is other:
        update["reason"] = f"{other.reason.removesuffix('.')}; the tool's name looks like {', '.join(resembles)}."
    if taken.action in ASKING:
        asking = [decision for decision in (own, other) if decision.action in ASKING]
        update["terms"] = guard_terms(strictest_terms([decision.terms for decision in asking]))
        if any(decision.request_payload is not None and not decision.request_payload.allow_edit for decision in asking):
            payload = taken.request_payload or RequestPayload()
            update["request_payload"] = payload.model_copy(update={"allow_edit": False})
    return vars(taken.model_copy(update=update))


def _merge_charges(charges: Sequence[Charge]) -> tuple[Charge, ...]:
    """Return one charge for each counter, with its limit if any has one."""
    merged: dict[str, Charge] = {}
    for charge in charges:
        if charge.counter not in merged or charge.most is not None:
            merged[charge.counter] = charge
    return tuple(merged.values())
