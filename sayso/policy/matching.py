"""Matching of one event against one rule."""

from collections.abc import Iterable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any

from sayso.canonical_json import JsonObject, check_json
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.conditions import Facts, bind_facts, compile_condition
from sayso.policy.memory.recalling import Recalled, recall
from sayso.policy.provenance.events import PolicyEvent
from sayso.policy.provenance.facts import check_after, describe_provenance
from sayso.policy.provenance.managers import check_managers
from sayso.policy.provenance.prices import Prices
from sayso.policy.rules import Action, PolicyRule, same_json
from sayso.policy.words.names import NO_NAMES, Names
from sayso.records.suspensions import Progress

MAX_ERROR_CHARS = 2000


class Case:
    """An event that can be evaluated, and what the rules file defines for its conditions.

    `recalled` holds what the memory of each rule that covers the event said, by rule.
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
        return bind_facts(values, self._names, partial(describe_provenance, self.event, self._prices))

    def list_computed(self, rules: Iterable[PolicyRule]) -> JsonObject:
        """Return what Sayso computed for the conditions of these rules, by shorthand."""
        if "facts" not in vars(self) or not self.facts.computing.has_any:
            return {}
        whens = [rule.condition.when for rule in rules if rule.condition.when is not None]
        return self.facts.computing.list_recorded(compile_condition(when).reading for when in whens)


def try_rule(rule: PolicyRule, case: Case) -> bool | str:
    """Return whether the rule applies, or a text when that is unknown."""
    covers = try_coverage(rule, case)
    if covers is True and rule.condition.memory:
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
    event, condition = case.event, rule.condition
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
        and (condition.after is None or _came_after(rule, event.progress))
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


def _came_after(rule: PolicyRule, progress: Progress | None) -> bool:
    """Return whether a tool of `after` ran before. A name that looks alike counts unless the rule allows."""
    return check_after(rule.condition.after or (), progress, loosely=rule.action is not Action.ALLOW)


def _fits(pattern: str | None, name: str | None) -> bool:
    return pattern is None or (name is not None and fnmatchcase(name, pattern))


def _has(facts: dict[str, Any], wanted: JsonObject) -> bool:
    return all(key in facts and same_json(facts[key], value) for key, value in wanted.items())


def describe_error(error: Exception) -> str:
    """Return the error as text of at most `MAX_ERROR_CHARS`."""
    return (str(error) if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}")[:MAX_ERROR_CHARS]
