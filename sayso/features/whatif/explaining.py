"""Which rule decides a call, and why others do not: parts of conditions are tried as rules of their own."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pydantic import Field, JsonValue

from sayso.core.calendar import Moment, find_start_ms, read_local
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.conditions import find_args
from sayso.core.policy.decisions import PolicyDecision, put_question, settle_veto
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent, describe_provenance
from sayso.core.policy.matching import Case, describe_error, try_rule
from sayso.core.policy.rule_keys import COUNTER_KEYS
from sayso.core.policy.rules import Action, PolicyRule, RuleCondition
from sayso.core.records.base import Immutable
from sayso.core.records.judgements import Remembered
from sayso.core.records.tools import ToolDefinition
from sayso.errors import SaysoError

MAX_NAME_CHARS = 200


class TrialCall(Immutable):
    """A call and the facts that rules read; `subagent` is "" for the agent itself and None when unknown."""

    tool: str = Field(min_length=1, max_length=MAX_NAME_CHARS, examples=["refund"])
    args: JsonObject = Field(default_factory=dict)
    agent: str = Field(default="", max_length=MAX_NAME_CHARS)
    subagent: str | None = Field(default=None, max_length=MAX_NAME_CHARS)
    step: int = Field(default=1, ge=1, le=999_999)
    context: JsonObject = Field(default_factory=dict, description="Facts about the run.")
    claimed: JsonObject = Field(default_factory=dict, description="What the agent says about the run.")
    at: Moment | None = Field(default=None, description="When the agent asks, such as 2026-12-24T18:00Z; now if null.")

    def as_event(self, now_ms: int) -> PolicyEvent:
        """Return the call as the rules see it."""
        return PolicyEvent(
            run_id="run_trial",
            step=self.step,
            agent=self.agent,
            tool_name=self.tool,
            tool_args=self.args,
            subagent_name=self.subagent,
            context=self.context,
            claimed=self.claimed,
            at_ms=find_start_ms(self.at) if self.at is not None else now_ms,
        )


class Match(StrEnum):
    """What a rule is to a call."""

    DECIDES = "decides"
    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    DISABLED = "disabled"
    SHADOW = "shadow"


class Trial(NamedTuple):
    """One rule tried on a call.

    `part` is the first part of the condition that is not met, such as `tool`, or `subjects` or `dates`. `saw` holds
    what the condition read, or what the call has for that part. `error` is why the rule could not be evaluated, and
    `remembered` what it remembers about such calls. `would` is the action of a shadow rule that would have decided.
    """

    rule: PolicyRule
    match: Match
    part: str = ""
    saw: JsonObject = {}  # noqa: RUF012  never changed
    error: str = ""
    would: Action | None = None
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
    "during": ("during",),
    "outside": ("outside",),
    "when": ("when",),
    "subagent": ("subagent_name",),
    "after": ("after",),
    "memory": COUNTER_KEYS,
}


def explain(policy: Policy, event: PolicyEvent, definition: ToolDefinition | None = None) -> Explanation:
    """Return the decision on a call, with each rule tried; a registered tool has its definition. Never raises."""
    reversible = definition is not None and definition.reversible
    decision = settle_veto(policy.judge(event), reversible=reversible)
    if definition is not None:
        decision = put_question(definition, event.tool_args, decision)
    try:
        case = Case(event, policy.names, policy.model_prices)
    except SaysoError as error:
        trials = [_skip(rule) or Trial(rule, Match.UNKNOWN, error=describe_error(error)) for rule in policy.rules]
    else:
        trials = [_try(rule, case, decision) for rule in policy.rules]
        remembered = {rule_id: recalled.remembered for rule_id, recalled in case.recalled.items()}
        trials = [trial._replace(remembered=remembered.get(trial.rule.rule_id, ())) for trial in trials]
    return Explanation(decision, tuple(trials))


def _skip(rule: PolicyRule) -> Trial | None:
    """Return the trial of a rule that decides no call."""
    if not rule.enabled:
        return Trial(rule, Match.DISABLED)
    return None if rule.is_live else Trial(rule, Match.SHADOW)


def _try(rule: PolicyRule, case: Case, decision: PolicyDecision) -> Trial:
    verdict, skipped = try_rule(rule, case), _skip(rule)
    saw = list_reads(rule.condition.when, case.event) | _see_time(rule, case.event) | case.list_computed([rule])
    error = verdict if isinstance(verdict, str) else ""
    if rule.rule_id == decision.policy_id:
        return Trial(rule, Match.DECIDES, saw=saw, error=error)
    if skipped is not None and skipped.match is Match.DISABLED:
        return skipped
    match = skipped.match if skipped is not None else Match.UNKNOWN if error else Match.MATCHES
    if verdict is not False:
        shadow = next((shadow for shadow in decision.shadow if shadow.rule_id == rule.rule_id), None)
        return Trial(rule, match, saw=saw, error=error, would=shadow.action if shadow is not None else None)
    part = _find_unmet(rule, case)
    match = skipped.match if skipped is not None else Match.DIFFERS
    return Trial(rule, match, part, saw if part == "when" else _list_facts(part, rule, case.event))


def _find_unmet(rule: PolicyRule, case: Case) -> str:
    """Return the first part that the engine finds unmet when it tries it alone."""
    for part, fields in _PARTS.items():
        stated = {name: getattr(rule.condition, name) for name in ("event_type", *fields)}
        condition = RuleCondition().model_copy(update=stated)
        update = {"condition": condition, "valid_from": None, "valid_until": None}
        if try_rule(rule.model_copy(update=update), case) is not True:
            return part if rule.covers(case.subject) else "subjects"
    return "dates" if rule.has_dates else ""


def _list_facts(part: str, rule: PolicyRule, event: PolicyEvent) -> JsonObject:
    """Return what the call has where the rule's condition differs."""
    condition = rule.condition
    if part in ("during", "outside", "dates"):
        return _see_time(rule, event)
    if part == "context":
        return _pick(event.context, (*condition.context_has_keys, *condition.context_equals))
    if part == "claimed":
        return _pick(event.claimed, (*condition.claimed_has_keys, *condition.claimed_equals))
    if part == "after":
        return _pick(describe_provenance(event, {})["run"], ("tools",))
    facts: dict[str, JsonValue] = {"tool": event.tool_name, "agent": event.agent, "subagent": event.subagent_name}
    return _pick(facts, (part,))


def _see_time(rule: PolicyRule, event: PolicyEvent) -> JsonObject:
    """Return the time of the call in the zone of the rule's hours, for rules that read the time."""
    if event.at_ms is None or not rule.reads_time:
        return {}
    windows = (rule.condition.during, rule.condition.outside)
    zone = next((window.zone for window in windows if window is not None), "UTC")
    return {"now": f"{read_local(event.at_ms, ZoneInfo(zone)):%a %Y-%m-%d %H:%M} {zone}"}


def list_reads(when: str | None, event: PolicyEvent) -> JsonObject:
    """Return what a condition reads of a call: arguments by name, and the other variables that it names."""
    if when is None:
        return {}
    reads = _pick(event.tool_args, find_args(when))
    facts: dict[str, JsonValue] = {"tool": event.tool_name, "agent": event.agent, "step": event.step}
    facts |= {"run_id": event.run_id, "context": event.context, "claimed": event.claimed}
    facts |= describe_provenance(event, {})
    unquoted = re.sub(r"""[rR]?"(?:\\.|[^"\\])*"|[rR]?'(?:\\.|[^'\\])*'""", "", when)
    named = re.findall(r"(?<![\w.])[a-z_]+\b(?!\()", unquoted)
    return reads | {name: facts[name] for name in dict.fromkeys(named) if name in facts}


def _pick(values: Mapping[str, JsonValue], names: Sequence[str]) -> JsonObject:
    return {name: values[name] for name in dict.fromkeys(names) if name in values}
