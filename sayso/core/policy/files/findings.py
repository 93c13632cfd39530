"""Findings in rules that load but do not work: dead rules, wrong names, missing reviewers."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice

from pydantic import JsonValue

from sayso.core.calendar import find_end_ms
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.conditions import compile_condition, find_args, find_comparisons
from sayso.core.policy.engine import Policy
from sayso.core.policy.functions.reading import list_text_tests
from sayso.core.policy.managers import MANAGERS
from sayso.core.policy.rules import ASKING, Action, PolicyRule, RuleCondition, Subject, same_json
from sayso.core.records.decisions import fill_places
from sayso.core.records.terms import GROUP_PREFIX, group_of
from sayso.core.records.tools import ToolDefinition

MOST_FINDINGS = 100
MOST_PAIRS = 200_000  # the limit of rule pairs that are compared; a rulebook of some hundred rules has fewer


@dataclass(frozen=True)
class Known:
    """The reviewers, with whether they are active, the tools of each agent, the members of each group, and the time.

    `assessors` are the names of those that can be asked.
    """

    reviewers: Mapping[str, bool] | None = None
    tools: Mapping[str, Sequence[ToolDefinition]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    now_ms: int | None = None
    assessors: Collection[str] | None = None


def find_findings(policy: Policy, known: Known) -> list[str]:
    """Return a sentence for each finding, up to `MOST_FINDINGS`."""
    rules = policy.live
    checks: list[Iterable[str]] = [_find_dead(rules)]
    checks.append(
        f"rule {rule.rule_id}: allows by claims of the agent, which are not checked; use context"
        for rule in rules
        if rule.action is Action.ALLOW and (rule.condition.claimed_equals or rule.condition.claimed_has_keys)
    )
    if known.now_ms is not None:
        checks.append(_find_outdated(policy.rules, known.now_ms))
    if known.reviewers is not None:
        checks.append(_find_missing_people(policy, rules, known.reviewers, known.groups))
    if known.assessors is not None:
        checks.append(
            f"rule {rule.rule_id}: takes every call for high, because SAYSO_ASSESSORS has no assessor "
            f"{rule.assess.by}; add it, or name another"
            for rule in rules
            if rule.assess is not None and rule.assess.by not in known.assessors
        )
    checks.append(finding for rule in rules for finding in _find_wrong_args(rule, known.tools))
    checks.append(_find_text_tests(policy.rules))
    return list(dict.fromkeys(islice((finding for check in checks for finding in check), MOST_FINDINGS)))


def _find_dead(rules: Sequence[PolicyRule]) -> Iterable[str]:
    pairs = ((first, later) for place, later in enumerate(rules) for first in rules[:place])
    for first, later in islice(pairs, MOST_PAIRS):
        if not _is_wider(first, later):
            continue
        when = first.condition.when
        if when in (None, later.condition.when) and not first.condition.counters:
            yield (
                f"rule {later.rule_id}: never decides, because rule {first.rule_id} is tried first and matches all its "
                "calls; raise its priority, or remove it"
            )
        elif first.action is Action.ALLOW and later.action is Action.DENY and first.priority == later.priority:
            yield (
                f"rule {first.rule_id}: allows before rule {later.rule_id} can deny, because both have priority "
                f"{first.priority} and its id comes first; raise the priority of {later.rule_id}"
            )


def _find_outdated(rules: Iterable[PolicyRule], now_ms: int) -> Iterable[str]:
    for rule in rules:
        if rule.enabled and rule.valid_until is not None and find_end_ms(rule.valid_until) <= now_ms:
            yield (
                f"rule {rule.rule_id}: no longer applies, because its valid_until {rule.valid_until} has passed; "
                "remove the rule, or set a later date"
            )
        if rule.enabled and rule.review_by is not None and find_end_ms(rule.review_by) <= now_ms:
            who = f" with its owner {rule.owner}" if rule.owner is not None else ""
            yield (
                f"rule {rule.rule_id}: its review_by {rule.review_by} has passed; review it{who}, then set a later date"
            )


def _is_wider(first: PolicyRule, later: PolicyRule) -> bool:
    """Whether the first rule matches everything the later one matches, apart from `when`."""
    wide, narrow = first.condition, later.condition
    subjects = [subject for subject in (Subject.TOOL_CALL, Subject.LLM_CALL) if later.covers(subject)]
    return (
        (not wide.tools or (bool(narrow.tools) and all(_fits(wide.tools, tool) for tool in narrow.tools)))
        and (not first.has_dates or (first.valid_from, first.valid_until) == (later.valid_from, later.valid_until))
        and wide.during in (None, narrow.during)
        and wide.outside in (None, narrow.outside)
        and all(first.covers(subject) for subject in subjects)
        and wide.agent in (None, "*", narrow.agent)
        and wide.agents in (None, narrow.agents)
        and wide.subagent_name in (None, narrow.subagent_name)
        and wide.after in (None, narrow.after)
        and _holds(wide.context_equals, wide.context_has_keys, narrow.context_equals, narrow.context_has_keys)
        and _holds(wide.claimed_equals, wide.claimed_has_keys, narrow.claimed_equals, narrow.claimed_has_keys)
        and _holds(wide.metadata_equals, (), narrow.metadata_equals, ())
    )


def _fits(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns matches all that a name, or a pattern, does."""
    if not any(sign in name for sign in "*?["):
        return any(fnmatchcase(name, pattern) for pattern in patterns)
    prefixes = [pattern[:-1] for pattern in patterns if pattern.endswith("*")]
    return name in patterns or any(
        name.startswith(stem) for stem in prefixes if not any(sign in stem for sign in "*?[")
    )


def _holds(wide: JsonObject, wide_keys: Sequence[str], narrow: JsonObject, narrow_keys: Sequence[str]) -> bool:
    equal = all(key in narrow and same_json(narrow[key], value) for key, value in wide.items())
    return equal and {*wide_keys} <= {*narrow_keys, *narrow}


def _find_missing_people(
    policy: Policy, rules: Iterable[PolicyRule], reviewers: Mapping[str, bool], groups: Mapping[str, Sequence[str]]
) -> Iterable[str]:
    asks = (rule for rule in rules if rule.action in ASKING or rule.terms.veto is not None)
    asking = [(f"rule {rule.rule_id}", rule.terms) for rule in asks]
    for label, terms in [*asking, ("terms", policy.terms)]:
        stated = terms.named
        named = [name for name in stated if name not in MANAGERS]
        for name in named:
            for fault in _find_faults_of(name, reviewers, groups):
                yield f"{label}: {fault}"
        if len(named) < len(stated):
            continue  # who the manager is depends on the run
        people = {person for name in named for person in _list_people(name, groups)}
        able = [
            name
            for name, active in reviewers.items()
            if active and (not (terms.reviewers or terms.stages) or name in people)
        ]
        places = [
            [person for person in _list_people(name, groups) if reviewers.get(person)] for name in terms.quorum.each_of
        ]
        if all(places) and len(fill_places(places)) < len(places):
            yield f"{label}: too few different people are in the {len(places)} groups of quorum.each_of; add some"
        seats = [
            [person for name in stage.reviewers for person in _list_people(name, groups) if reviewers.get(person)]
            for stage in terms.stages
            for _ in range(stage.quorum.approve)
        ]
        if all(seats) and len(fill_places(seats)) < len(seats):
            yield f"{label}: its stages need {len(seats)} different people, for nobody approves in two; add some"
        for verb, needed in (("approve", terms.quorum.approve), ("deny", terms.quorum.deny)):
            if needed > max(1, len(able)) or (named and not able and verb == "approve"):
                yield (
                    f"{label}: {needed} must {verb}, but only {len(able)} of the reviewers can decide; "
                    f"add reviewers, or lower quorum.{verb}"
                )


def _find_faults_of(name: str, reviewers: Mapping[str, bool], groups: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Yield why a person or group that a rule names cannot decide."""
    group = group_of(name)
    if group is not None and group not in groups:
        yield f"there is no group {group!r}{_hint(group, groups)}; create it, or correct the name"
    elif group is not None and not any(reviewers.get(member) for member in groups[group]):
        yield f"the group {group!r} has no active member; add one, or name another group"
    elif group is None and name not in reviewers:
        hint = f" (did you mean '{GROUP_PREFIX}{name}'?)" if name in groups else _hint(name, reviewers)
        yield f"there is no reviewer {name!r}{hint}; add them, or correct the name"
    elif group is None and not reviewers[name]:
        yield f"the reviewer {name!r} is deactivated; name another one"


def _list_people(name: str, groups: Mapping[str, Sequence[str]]) -> Sequence[str]:
    group = group_of(name)
    return (name,) if group is None else groups.get(group, ())


def _find_wrong_args(rule: PolicyRule, tools: Mapping[str, Sequence[ToolDefinition]]) -> Iterable[str]:
    schemas = _find_schemas(rule.condition, tools)
    if not schemas:
        return
    when, payload = rule.condition.when or "", rule.request_payload
    known = {name for properties in schemas.values() for name in properties}
    target = [payload.target_arg] if payload is not None and payload.target_arg is not None else []
    for place, names in (("when", find_args(when)), ("ask.target_arg", target)):
        for name in names:
            if name not in known:
                listed = ", ".join(sorted(schemas))
                yield f"rule {rule.rule_id}: {place}: {listed} has no argument {name!r}{_hint(name, known)}; correct it"
    variables = compile_condition(when).reading.variables if when else ()
    for call in (variable.call for variable in variables):
        if call.shorthand.any_value or len(call.path) != len(("args", "name")) or call.path[0] != "args":
            continue
        if listed := _find_others(schemas, str(call.path[1]), {"string", "array"}):
            yield (
                f"rule {rule.rule_id}: when: {call.label} can never work, because {call.path[1]} is {listed} in the "
                "tool's schema; give it a text"
            )
    for clause in find_comparisons(when):
        expected = {"string"} if clause.is_text else {"number", "integer"}
        if listed := _find_others(schemas, clause.arg, expected):
            literal = f'"{clause.literal}"' if clause.is_text else clause.literal
            yield (
                f"rule {rule.rule_id}: when: args.{clause.arg} {clause.sign} {literal} can never work, because "
                f"{clause.arg} is {listed} in the tool's schema; use a value of that type"
            )


def _find_others(schemas: Mapping[str, Mapping[str, JsonValue]], name: str, expected: set[str]) -> str:
    """Return the types of an argument if all tools that take it state some, none of them an expected one."""
    kinds = [_kinds_of(schema[name]) for schema in schemas.values() if name in schema]
    never = all(kind and not kind & expected for kind in kinds)
    return " or ".join(sorted({word for kind in kinds for word in kind})) if never else ""


def _find_text_tests(rules: Sequence[PolicyRule]) -> Iterable[str]:
    """Yield the conditions that search the text of a command which a rule also reads as a shell does."""
    conditions = [(rule.rule_id, rule.condition.when) for rule in rules if rule.condition.when]
    calls = [variable.call for _, when in conditions for variable in compile_condition(when).reading.variables]
    commands = {call.source for call in calls if call.name == "shell"}
    for rule_id, when in conditions if commands else ():
        for source, function in list_text_tests(when):
            if source in commands:
                yield (
                    f"rule {rule_id}: when: {source}.{function}(…) searches a command that the shell reads otherwise "
                    f"(quotes, variables, several commands); compare shell({source}).calls"
                )


def _find_schemas(
    condition: RuleCondition, tools: Mapping[str, Sequence[ToolDefinition]]
) -> dict[str, Mapping[str, JsonValue]]:
    schemas: dict[str, Mapping[str, JsonValue]] = {}
    for agent, definitions in tools.items():
        patterns = (*((condition.agent,) if condition.agent is not None else ()), *(condition.agents or ()))
        if patterns and not any(fnmatchcase(agent, pattern) for pattern in patterns):
            continue
        for definition in definitions:
            if any(fnmatchcase(definition.name, pattern) for pattern in condition.tools):
                properties = definition.parameters.get("properties")
                if not isinstance(properties, dict) or definition.parameters.get("patternProperties"):
                    return {}
                schemas[definition.name] = {**schemas.get(definition.name, {}), **properties}
    return schemas


def _kinds_of(schema: JsonValue) -> frozenset[str]:
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kind] if isinstance(kind, str) else kind
    return frozenset(name for name in kinds if isinstance(name, str)) if isinstance(kinds, list) else frozenset()


def _hint(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""
