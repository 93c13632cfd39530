"""Which rule decides a call, and why each other rule does not.

The engine itself answers every question: a part of a condition is tried as a rule of that part alone.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import SaysoError
from sayso.policy.conditions import find_args
from sayso.policy.engine import Policy, PolicyDecision, PolicyEvent
from sayso.policy.matching import Case, describe_error, try_rule
from sayso.policy.memory.keys import MEMORY_KEYS
from sayso.policy.provenance.facts import describe_provenance
from sayso.policy.questions import put_question
from sayso.policy.rules import PolicyRule, RuleCondition
from sayso.records.memory.charges import Remembered
from sayso.records.tool_calls import ToolDefinition


class Match(StrEnum):
    """What a rule is to a call."""

    DECIDES = "decides"
    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    DISABLED = "disabled"


class Trial(NamedTuple):
    """One rule tried on a call.

    `part` is the first part of the condition that is not met, such as `tool`, or `subjects`. `saw` holds what the
    condition `when` read, or what the call has for that part. `error` is why the rule could not be evaluated, and
    `remembered` what it remembers about such calls.
    """

    rule: PolicyRule
    match: Match
    part: str = ""
    saw: JsonObject = {}  # noqa: RUF012  never changed
    error: str = ""
    remembered: tuple[Remembered, ...] = ()


class Explanation(NamedTuple):
    """The decision on a call, and every rule in the order of trial."""

    decision: PolicyDecision
    trials: tuple[Trial, ...]


# The parts of a condition in the order in which the engine tries them.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "tool": ("tool_name", "tool_name_pattern", "tool_names"),
    "agent": ("agent", "agents"),
    "context": ("context_has_keys", "context_equals"),
    "claimed": ("claimed_has_keys", "claimed_equals"),
    "metadata": ("metadata_equals",),
    "when": ("when",),
    "subagent": ("subagent_name",),
    "after": ("after",),
    "memory": MEMORY_KEYS,
}


def explain(policy: Policy, event: PolicyEvent, definition: ToolDefinition | None = None) -> Explanation:
    """Return the decision on a call, with each rule tried; a registered tool has its definition. Never raises."""
    decision = policy.judge(event)
    if definition is not None:
        decision = put_question(definition, event.tool_args, decision)
    try:
        case = Case(event, policy.names, policy.model_prices)
    except SaysoError as error:
        trials = [Trial(rule, _match(rule), error=describe_error(error)) for rule in policy.rules]
    else:
        trials = [_try(rule, case, decision)._replace(remembered=_find_remembered(rule, case)) for rule in policy.rules]
    return Explanation(decision, tuple(trials))


def _match(rule: PolicyRule) -> Match:
    return Match.UNKNOWN if rule.enabled else Match.DISABLED


def _find_remembered(rule: PolicyRule, case: Case) -> tuple[Remembered, ...]:
    recalled = case.recalled.get(rule.rule_id)
    return recalled.remembered if recalled is not None else ()


def _try(rule: PolicyRule, case: Case, decision: PolicyDecision) -> Trial:
    verdict = try_rule(rule, case)
    saw = list_reads(rule.condition.when, case.event) | case.list_computed([rule])
    if rule.rule_id == decision.policy_id:
        return Trial(rule, Match.DECIDES, saw=saw)
    if not rule.enabled:
        return Trial(rule, Match.DISABLED)
    if isinstance(verdict, str):
        return Trial(rule, Match.UNKNOWN, saw=saw, error=verdict)
    if verdict:
        return Trial(rule, Match.MATCHES, saw=saw)
    part = _find_unmet(rule, case)
    return Trial(rule, Match.DIFFERS, part, saw if part == "when" else _list_facts(part, rule, case.event))


def _find_unmet(rule: PolicyRule, case: Case) -> str:
    """Return the first part that the engine finds unmet when it tries it alone."""
    for part, fields in _PARTS.items():
        stated = {name: getattr(rule.condition, name) for name in ("event_type", *fields)}
        condition = RuleCondition().model_copy(update=stated)
        if try_rule(rule.model_copy(update={"condition": condition}), case) is not True:
            return part if rule.covers(case.subject) else "subjects"
    return ""


def _list_facts(part: str, rule: PolicyRule, event: PolicyEvent) -> JsonObject:
    """Return what the call has where the rule's condition differs."""
    condition = rule.condition
    if part == "context":
        return _pick(event.context, (*condition.context_has_keys, *condition.context_equals))
    if part == "claimed":
        return _pick(event.claimed, (*condition.claimed_has_keys, *condition.claimed_equals))
    if part == "after":
        return _pick(describe_provenance(event, {})["run"], ("tools",))
    facts: dict[str, JsonValue] = {"tool": event.tool_name, "agent": event.agent, "subagent": event.subagent_name}
    return _pick(facts, (part,))


def list_reads(when: str | None, event: PolicyEvent) -> JsonObject:
    """Return what a condition reads of a call: arguments by name, and the other variables that it names."""
    if when is None:
        return {}
    found = _pick(event.tool_args, find_args(when))
    facts: dict[str, JsonValue] = {"tool": event.tool_name, "agent": event.agent, "step": event.step}
    facts |= {"run_id": event.run_id, "context": event.context, "claimed": event.claimed}
    facts |= describe_provenance(event, {})
    unquoted = re.sub(r"""[rR]?"(?:\\.|[^"\\])*"|[rR]?'(?:\\.|[^'\\])*'""", "", when)
    named = re.findall(r"(?<![\w.])[a-z_]+\b(?!\()", unquoted)
    return found | {name: facts[name] for name in dict.fromkeys(named) if name in facts}


def _pick(found: Mapping[str, JsonValue], names: Sequence[str]) -> JsonObject:
    return {name: found[name] for name in dict.fromkeys(names) if name in found}
