"""Matching of one event against one rule, also under the names in rules that the tool's own name looks like."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any

from sayso.core.canonical_json import JsonObject, check_json
from sayso.core.policy.conditions import Facts, compile_condition
from sayso.core.policy.counters.recalling import Recalled, recall
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.events import PolicyEvent, Prices, check_after, describe_provenance
from sayso.core.policy.functions import NO_NAMES, Names
from sayso.core.policy.managers import check_managers
from sayso.core.policy.rules import ASKING, Action, PolicyRule, RequestPayload, same_json
from sayso.core.policy.strictness import STRICTNESS, guard_terms, strictest_terms
from sayso.core.records.judgements import Charge
from sayso.core.records.tools import find_alike
from sayso.errors import InvalidInput, SaysoError

MAX_ERROR_CHARS = 2000


class Case:
    """An event that can be evaluated, and what the rules file defines for its conditions.

    `recalled` holds what the counters of each rule that covers the event said, by rule.
    """

    def __init__(self, event: PolicyEvent, names: Names = NO_NAMES, prices: Prices | None = None) -> None:
        called = [event.tool_name, event.agent, event.run_id, event.subagent_name]
        given = {"context": event.context, "claimed": event.claimed, "metadata": event.metadata}
        check_json({"args": event.tool_args, **given, "names": called})
        self.event = event
        self.subject = event.subject
        self._names = names
        self._prices = prices or {}
        self.recalled: dict[str, Recalled] = {}

    @cached_property
    def facts(self) -> Facts:
        event = self.event
        shared = {name: getattr(event, name) for name in ("agent", "context", "claimed", "run_id", "step")}
        now = {} if event.at_ms is None else {"now": datetime.fromtimestamp(event.at_ms / 1000, tz=UTC)}
        values = {"args": event.tool_args, "tool": event.tool_name or "", **shared, **now}
        return Facts(values, self._names, partial(describe_provenance, self.event, self._prices))

    def list_computed(self, rules: Iterable[PolicyRule]) -> JsonObject:
        """Return what Sayso computed for the conditions of these rules, by shorthand."""
        if "facts" not in vars(self) or not self.facts.computing.has_any:
            return {}
        whens = [rule.condition.when for rule in rules if rule.condition.when is not None]
        return self.facts.computing.list_recorded(compile_condition(when).reading for when in whens)


def try_rule(rule: PolicyRule, case: Case) -> bool | str:
    """Return whether the rule applies, or a text when that is unknown."""
    covers = try_coverage(rule, case)
    if covers is True and rule.condition.counters:
        recalled = case.recalled[rule.rule_id] = recall(rule, case.event)
        covers = recalled.applies
    return covers


def try_coverage(rule: PolicyRule, case: Case) -> bool | str:
    """Return whether all keys of the rule hold apart from those that remember, or a text when that is unknown."""
    try:
        return rule.enabled and _applies(rule, case)
    except Exception as error:  # noqa: BLE001 - one faulty rule must not hide the others
        return describe_error(error)


def is_about_agent(rule: PolicyRule, agent: str) -> bool:
    """Return whether the rule covers calls of this agent."""
    pattern, patterns = rule.condition.agent, rule.condition.agents
    return _fits(pattern, agent) and (patterns is None or any(_fits(name, agent) for name in patterns))


def _applies(rule: PolicyRule, case: Case) -> bool:
    event, condition, loosely = case.event, rule.condition, rule.action is not Action.ALLOW
    # A name that looks alike counts unless the rule allows.
    return (
        rule.covers(case.subject)
        and condition.tool_name in (None, event.tool_name)
        and _fits(condition.tool_name_pattern, event.tool_name)
        and (condition.tool_names is None or any(_fits(name, event.tool_name) for name in condition.tool_names))
        and is_about_agent(rule, event.agent)
        and (not condition.context_has_keys or all(key in event.context for key in condition.context_has_keys))
        and (not condition.context_equals or _has(event.context, condition.context_equals))
        and (not condition.claimed_has_keys or all(key in event.claimed for key in condition.claimed_has_keys))
        and (not condition.claimed_equals or _has(event.claimed, condition.claimed_equals))
        and (not condition.metadata_equals or _is_of_model(event, condition.metadata_equals))
        and (not rule.has_dates or rule.is_valid(_read_time(event)))
        and (condition.during is None or condition.during.covers(_read_time(event)))
        and (condition.outside is None or not condition.outside.covers(_read_time(event)))
        and (condition.when is None or compile_condition(condition.when).holds(case.facts))
        and (condition.subagent_name is None or _is_made_by(condition.subagent_name, event))
        and (condition.after is None or check_after(condition.after, event.progress, loosely=loosely))
        and (not rule.names_managers or check_managers(rule.terms, event.who))
    )


def _read_time(event: PolicyEvent) -> int:
    if event.at_ms is None:
        raise InvalidInput("the time of this call is unknown")
    return event.at_ms


def _is_of_model(event: PolicyEvent, wanted: JsonObject) -> bool:
    if unknown := [key for key in wanted if key not in event.metadata]:
        raise InvalidInput(f"the {unknown[0]} of this model call is unknown")
    return _has(event.metadata, wanted)


def _is_made_by(pattern: str, event: PolicyEvent) -> bool:
    if event.subagent_name is None:
        raise InvalidInput("it is unknown whether a sub-agent makes this call")
    return bool(event.subagent_name) and fnmatchcase(event.subagent_name, pattern)


def _fits(pattern: str | None, name: str | None) -> bool:
    return pattern is None or (name is not None and fnmatchcase(name, pattern))


def _has(facts: dict[str, Any], wanted: JsonObject) -> bool:
    return all(key in facts and same_json(facts[key], value) for key, value in wanted.items())


def describe_error(error: Exception) -> str:
    """Return the error as text of at most `MAX_ERROR_CHARS`."""
    return (str(error) if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}")[:MAX_ERROR_CHARS]


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
    """Return the stricter decision, on a tool's own name or on those alike; if both ask, terms that satisfy both."""
    both = own.action in ASKING and other.action in ASKING
    by_default = own.policy_id is None and own.in_doubt is None
    weights = [(STRICTNESS[made.action], made.absolute, made.terms.veto is not None) for made in (own, other)]
    stricter = weights[1] > weights[0]
    taken = other if (both and by_default) or stricter else own
    # One charge for each counter, with its limit if any has one.
    merged: dict[str, Charge] = {}
    for charge in (*own.charges, *other.charges):
        if charge.counter not in merged or charge.most is not None:
            merged[charge.counter] = charge
    update: dict[str, Any] = {
        "rule_version": own.rule_version,
        "matched_rules": tuple(dict.fromkeys((*own.matched_rules, *other.matched_rules))),
        "error": "; ".join(decision.error for decision in (own, other) if decision.error)[:MAX_ERROR_CHARS] or None,
        "in_doubt": max((own.in_doubt, other.in_doubt), key=lambda doubt: -1 if doubt is None else STRICTNESS[doubt]),
        "resembles": resembles,
        "computed": {**own.computed, **other.computed},
        "remembered": tuple(dict.fromkeys((*own.remembered, *other.remembered))),
        "charges": tuple(merged.values()),
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
