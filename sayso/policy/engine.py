"""Judge what an agent is about to do: allow it, deny it, or have a person asked, by rules that are plain data.

Rules are tried from the highest priority down, equal ones by id from a to z; the first that matches decides. Whatever
goes wrong while judging ends in a person being asked: nothing here raises on a call, and no error allows one.
"""

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Self

from pydantic import ConfigDict, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from sayso.canonical_json import check_json, digest_json
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.conditions import bind_facts, compile_condition
from sayso.policy.lookalikes import may_be_about, merge_payloads, names_of, take_stricter, unname
from sayso.policy.rules import (
    ASKING,
    SUBJECTS,
    Action,
    EventType,
    JsonObject,
    PolicyRule,
    RequestPayload,
    RuleCondition,
    Subject,
    check_fallback,
    check_quorum,
    same_json,
)
from sayso.policy.strictness import STRICTNESS, guard_terms, strictest_terms
from sayso.records.base import Immutable
from sayso.records.terms import RuleTerms
from sayso.records.tool_names import find_alike

__all__ = [
    "ASK_EVERYTHING",
    "Action",
    "Policy",
    "PolicyDecision",
    "PolicyEvent",
    "PolicyRule",
    "RequestPayload",
    "RuleCondition",
    "Subject",
    "stricter",
]

MAX_ERROR_CHARS = 2000


class PolicyEvent(Immutable):
    """Something an agent is about to do, as the rules see it.

    Arguments and context are taken as they are, so that a value which is not JSON is asked about instead of refused.
    `subagent_name` is "" for a call of the agent itself, and None where nobody knows whose call it is. `context` holds
    what the desk knows; `claimed` holds what the agent says of itself, which nobody has checked.
    """

    event_type: EventType = "tool_before_execute"
    run_id: str
    thread_id: str | None = None
    step: int = Field(default=0, ge=0)
    agent: str
    tool_name: str | None = None
    tool_args: dict[str, Any] = Field(default_factory=dict)
    subagent_name: str | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    claimed: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def subject(self) -> Subject:
        """What the event is about, as its type says."""
        return SUBJECTS[self.event_type]


class PolicyDecision(Immutable):
    """What the rules say of one event, and why. `error` tells what could not be judged, whoever decided.

    `in_doubt` is there where the event could not be judged: the strictest action that it could have fallen under.
    `resembles` has the names in rules that the tool's name looks like; those rules have judged it too.
    """

    model_config = ConfigDict(revalidate_instances="always")

    action: Action
    reason: str
    request_payload: RequestPayload | None = None
    policy_id: str | None = None
    matched_rules: tuple[str, ...] = ()
    terms: RuleTerms = RuleTerms()
    rule_version: str
    error: str | None = None
    in_doubt: Action | None = None
    resembles: tuple[str, ...] = ()


class Policy(Immutable):
    """The rules in force, in the order they are tried, and what happens when none of them matches."""

    rules: tuple[PolicyRule, ...] = ()
    default: Action
    terms: RuleTerms = RuleTerms()
    _version: str = PrivateAttr(default="unknown")

    @field_validator("rules")
    @classmethod
    def _order(cls, rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
        count = Counter(rule.rule_id for rule in rules)
        if repeated := sorted(rule_id for rule_id, times in count.items() if times > 1):
            raise ValueError(f"rule ids must be unique; rename the second {', '.join(repeated)}")
        return tuple(sorted(rules, key=lambda rule: (-rule.priority, rule.rule_id)))

    @field_validator("default")
    @classmethod
    def _check_default(cls, default: Action) -> Action:
        if default is Action.REQUEST_USER_INPUT:
            raise ValueError("the default cannot ask for a value; choose request_approval, deny or allow")
        return default

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: RuleTerms, info: ValidationInfo) -> RuleTerms:
        if "default" in info.data:
            check_fallback(terms.fallback, info.data["default"], None)
        check_quorum(terms)  # whatever the default says: what cannot be judged is asked under these terms
        return terms

    @model_validator(mode="after")
    def _fix_version(self) -> Self:
        # Rule by rule, for a digest is limited in size and a rulebook is not.
        rules = [digest_json(rule.model_dump(mode="json")) for rule in self.rules]
        content = {"default": self.default, "terms": self.terms.model_dump(mode="json"), "rules": rules}
        self._version = digest_json(content)[:16]
        return self

    @cached_property
    def tool_names(self) -> frozenset[str]:
        """The names and patterns of tools in the rules in use."""
        return frozenset(name for rule in self.rules if rule.enabled for name in names_of(rule))

    @property
    def version(self) -> str:
        """The first 16 hex digits of the SHA-256 over everything that can change a decision."""
        return self._version

    @property
    def judges_models(self) -> bool:
        """Whether any rule is about model calls."""
        return any(rule.enabled and rule.covers(Subject.LLM_CALL) for rule in self.rules)

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return what the rules say of `event`. Never raises; whatever cannot be judged is asked.

        Nobody can be asked about a model call: one that cannot be judged is denied, one that no rule is about allowed.
        """
        try:
            decision = PolicyDecision.model_validate(self._weigh(_Case(event)))
        except Exception as error:  # noqa: BLE001 - no error may decide a call, whatever it is: a person does
            decision = self._ask_unjudged(event, _describe(error))
        return _decide_model_call(decision) if _is_model_call(event) else decision

    def _weigh(self, case: "_Case") -> dict[str, Any]:
        """Return what the rules say of the tool under its own name and under those it looks like: the stricter."""
        own = self._try_rules(case)
        alike = find_alike(self.tool_names, case.event.tool_name or "")
        if not alike:
            return own
        rules = tuple(unname(rule) for rule in self.rules if rule.enabled and not alike.isdisjoint(names_of(rule)))
        others = Policy.model_construct(rules=rules, default=Action.ALLOW, terms=self.terms)
        other = PolicyDecision.model_validate(others._try_rules(case))
        return take_stricter(PolicyDecision.model_validate(own), other, tuple(sorted(alike)))

    def _try_rules(self, case: "_Case") -> dict[str, Any]:
        """Return the fields of the decision; they are checked once, in `judge`, whoever made them."""
        deciding: PolicyRule | None = None
        matched: list[str] = []
        doubted: list[PolicyRule] = []  # those that might have decided
        problems: list[str] = []
        for rule in self.rules:
            verdict = _try_rule(rule, case)
            if isinstance(verdict, str):
                problems.append(f"rule {rule.rule_id}: {verdict}")
                if deciding is None:
                    doubted.append(rule)
            elif verdict:
                matched.append(rule.rule_id)
                deciding = rule if deciding is None else deciding
        error = "; ".join(problems)[:MAX_ERROR_CHARS] or None
        if doubted:
            reason = f"Rule {doubted[0].rule_id} could not be judged, so a person decides."
            return self._ask(reason, error, tuple(matched), doubted, deciding)
        return self._decide(deciding, tuple(matched), error)

    def _decide(self, rule: PolicyRule | None, matched: tuple[str, ...], error: str | None) -> dict[str, Any]:
        if rule is None:
            return {
                "action": self.default,
                "reason": f"No rule matched; the default is {self.default}.",
                "terms": self.terms,
                "rule_version": self.version,
                "error": error,
            }
        return {
            "action": rule.action,
            "reason": rule.reason or f"Rule {rule.rule_id} says {rule.action}.",
            "request_payload": rule.request_payload,
            "policy_id": rule.rule_id,
            "matched_rules": matched,
            "terms": rule.terms,
            "rule_version": self.version,
            "error": error,
        }

    def _ask_unjudged(self, event: PolicyEvent, error: str) -> PolicyDecision:
        """Return the decision to ask about an event that no rule could be tried on."""
        reason = "The call could not be judged, so a person decides."
        try:
            rules = [rule for rule in self.rules if rule.enabled and may_be_about(rule, event.tool_name or "")]
            return PolicyDecision.model_validate(self._ask(reason, error, doubted=rules))
        except Exception as fault:  # noqa: BLE001 - the event or a rule is at fault itself, so the file's terms hold
            return PolicyDecision.model_validate(self._ask(reason, f"{error}; {_describe(fault)}"[:MAX_ERROR_CHARS]))

    def _ask(
        self,
        reason: str,
        error: str | None,
        matched: tuple[str, ...] = (),
        doubted: Sequence[PolicyRule] = (),
        deciding: PolicyRule | None = None,
    ) -> dict[str, Any]:
        """Return the decision to ask in doubt, under the strictest terms that the event could have fallen under."""
        rules = [*doubted, *([deciding] if deciding is not None else [])]
        asking = [rule for rule in rules if rule.action in ASKING]
        terms = [rule.terms for rule in asking]
        actions = [rule.action for rule in rules]
        if deciding is None:
            actions.append(self.default)
            terms += [self.terms] if self.default in ASKING or not terms else []
        return {
            "action": Action.REQUEST_APPROVAL,
            "reason": reason,
            "request_payload": merge_payloads(asking),
            "matched_rules": matched,
            "terms": guard_terms(strictest_terms(terms or [self.terms])),
            "rule_version": self.version,
            "error": error,
            "in_doubt": max(actions, key=lambda action: STRICTNESS[action]),
        }


ASK_EVERYTHING = Policy(default=Action.REQUEST_APPROVAL)
"""The policy in force when no file is configured."""


def stricter(a: PolicyDecision, b: PolicyDecision) -> PolicyDecision:
    """Return the stricter of two decisions (deny, then asking, then allow); `a` when they are equally strict."""
    return b if STRICTNESS[b.action] > STRICTNESS[a.action] else a


class _Case:
    """One event that can be judged, its facts in the engine's form made when the first condition needs them."""

    def __init__(self, event: PolicyEvent) -> None:
        names = [event.tool_name, event.agent, event.run_id, event.subagent_name]
        given = {"context": event.context, "claimed": event.claimed, "metadata": event.metadata}
        check_json({"args": event.tool_args, **given, "names": names})
        self.event = event
        self.subject = event.subject

    @cached_property
    def facts(self) -> Any:
        event = self.event
        return bind_facts(
            {
                "args": event.tool_args,
                "tool": event.tool_name or "",
                "agent": event.agent,
                "context": event.context,
                "claimed": event.claimed,
                "run_id": event.run_id,
                "step": event.step,
            }
        )


def _try_rule(rule: PolicyRule, case: _Case) -> bool | str:
    """Return whether the rule applies, or in words why that cannot be said."""
    try:
        return rule.enabled and _applies(rule, case)
    except Exception as error:  # noqa: BLE001 - the fault of one rule must not hide what the others say
        return _describe(error)


def _applies(rule: PolicyRule, case: _Case) -> bool:
    event, condition = case.event, rule.condition
    return (
        rule.covers(case.subject)
        and condition.tool_name in (None, event.tool_name)
        and _fits(condition.tool_name_pattern, event.tool_name)
        and (condition.tool_names is None or any(_fits(one, event.tool_name) for one in condition.tool_names))
        and _fits(condition.agent, event.agent)
        and all(key in event.context for key in condition.context_has_keys)
        and _has(event.context, condition.context_equals)
        and all(key in event.claimed for key in condition.claimed_has_keys)
        and _has(event.claimed, condition.claimed_equals)
        and _is_of_model(event, condition.metadata_equals)
        and (condition.when is None or compile_condition(condition.when).holds(case.facts))
        and (condition.subagent_name is None or _is_made_by(condition.subagent_name, event))
    )


def _is_of_model(event: PolicyEvent, wanted: JsonObject) -> bool:
    if unknown := [key for key in wanted if key not in event.metadata]:
        raise InvalidInput(f"nobody here knows the {unknown[0]} of this model call")
    return _has(event.metadata, wanted)


def _is_made_by(pattern: str, event: PolicyEvent) -> bool:
    if event.subagent_name is None:
        raise InvalidInput("nobody here knows whether a sub-agent makes this call")
    return bool(event.subagent_name) and fnmatchcase(event.subagent_name, pattern)


def _is_model_call(event: object) -> bool:
    """Tell whether it is about a model call; what is no event at all is not."""
    return isinstance(event, PolicyEvent) and event.event_type == "llm_before_execute"


def _decide_model_call(decision: PolicyDecision) -> PolicyDecision:
    """Return the decision on a model call: the default is for tool calls, and nobody can be asked."""
    if decision.policy_id is None and decision.error is None:
        return decision.model_copy(update={"action": Action.ALLOW, "reason": "No rule is about this model call."})
    if decision.action not in ASKING:
        return decision
    reason = "The rules could not be judged, and nobody is asked about a model call."
    return decision.model_copy(update={"action": Action.DENY, "reason": reason, "request_payload": None})


def _fits(pattern: str | None, name: str | None) -> bool:
    return pattern is None or (name is not None and fnmatchcase(name, pattern))


def _has(found: dict[str, Any], wanted: JsonObject) -> bool:
    return all(key in found and same_json(found[key], value) for key, value in wanted.items())


def _describe(error: Exception) -> str:
    return (str(error) if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}")[:MAX_ERROR_CHARS]
