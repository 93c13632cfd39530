"""Judge what an agent is about to do: allow it, deny it, or have a person asked, by rules that are plain data.

Rules are tried from the highest priority down, equal ones by id from a to z; the first that matches decides. Whatever
goes wrong while judging ends in a person being asked: nothing here raises on a call, and no error allows one.
"""

from collections import Counter
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Self

from pydantic import ConfigDict, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from sayso.canonical import check_json, digest_json
from sayso.conditions import bind_facts, compile_condition
from sayso.errors import SaysoError
from sayso.frozen import Frozen
from sayso.rules import (
    ASKING,
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
from sayso.terms import Fallback, FallbackAction, RuleTerms

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

_STRICTNESS = {Action.ALLOW: 0, Action.REQUEST_APPROVAL: 1, Action.REQUEST_USER_INPUT: 1, Action.DENY: 2}
_SUBJECTS = {
    "tool": Subject.TOOL_CALL,
    "llm": Subject.LLM_CALL,
    "subagent": Subject.SUBAGENT_CALL,
    "interaction": Subject.INTERACTION,
}


class PolicyEvent(Frozen):
    """Something an agent is about to do, as the rules see it.

    Arguments and context are taken as they are, so that a value which is not JSON is asked about instead of refused.
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
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def subject(self) -> Subject:
        """What the event is about, from the first word of its type."""
        return _SUBJECTS[self.event_type.partition("_")[0]]


class PolicyDecision(Frozen):
    """What the rules say of one event, and why. `error` tells what could not be judged, whoever decided."""

    model_config = ConfigDict(revalidate_instances="always")

    action: Action
    reason: str
    request_payload: RequestPayload | None = None
    policy_id: str | None = None
    matched_rules: tuple[str, ...] = ()
    terms: RuleTerms = RuleTerms()
    rule_version: str
    error: str | None = None


class Policy(Frozen):
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

    @property
    def version(self) -> str:
        """The first 16 hex digits of the SHA-256 over everything that can change a decision."""
        return self._version

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return what the rules say of `event`. Never raises; whatever cannot be judged is asked."""
        try:
            return PolicyDecision.model_validate(self._try_rules(_Case(event)))
        except Exception as error:  # noqa: BLE001 - no error may decide a call, whatever it is: a person does
            asked = self._ask("The call could not be judged, so a person decides.", _describe(error))
            return PolicyDecision.model_validate(asked)

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
            return self._ask(reason, error, tuple(matched), (*doubted, *((deciding,) if deciding else ())))
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

    def _ask(
        self, reason: str, error: str | None, matched: tuple[str, ...] = (), rules: tuple[PolicyRule, ...] = ()
    ) -> dict[str, Any]:
        """Return the decision to ask in doubt, as the first of `rules` that asks would have done."""
        asking = next((rule for rule in rules if rule.action in ASKING), None)
        payload = asking.request_payload if asking and asking.action is Action.REQUEST_APPROVAL else None
        return {
            "action": Action.REQUEST_APPROVAL,
            "reason": reason,
            "request_payload": payload,
            "matched_rules": matched,
            "terms": _guard(asking.terms if asking else self.terms),
            "rule_version": self.version,
            "error": error,
        }


ASK_EVERYTHING = Policy(default=Action.REQUEST_APPROVAL)
"""The policy in force when no file is configured."""


def stricter(a: PolicyDecision, b: PolicyDecision) -> PolicyDecision:
    """Return the stricter of two decisions (deny, then asking, then allow); `a` when they are equally strict."""
    return b if _STRICTNESS[b.action] > _STRICTNESS[a.action] else a


class _Case:
    """One event that can be judged, its facts in the engine's form made when the first condition needs them."""

    def __init__(self, event: PolicyEvent) -> None:
        names = [event.tool_name, event.agent, event.run_id, event.subagent_name]
        check_json({"args": event.tool_args, "context": event.context, "metadata": event.metadata, "names": names})
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
        (Subject.ANY in rule.subjects or case.subject in rule.subjects)
        and condition.event_type in (None, event.event_type)
        and condition.tool_name in (None, event.tool_name)
        and _fits(condition.tool_name_pattern, event.tool_name)
        and _fits(condition.agent, event.agent)
        and _fits(condition.subagent_name, event.subagent_name)
        and all(key in event.context for key in condition.context_has_keys)
        and _has(event.context, condition.context_equals)
        and _has(event.metadata, condition.metadata_equals)
        and (condition.when is None or compile_condition(condition.when).holds(case.facts))
    )


def _fits(pattern: str | None, name: str | None) -> bool:
    return pattern is None or (name is not None and fnmatchcase(name, pattern))


def _has(found: dict[str, Any], wanted: JsonObject) -> bool:
    return all(key in found and same_json(found[key], value) for key, value in wanted.items())


def _guard(terms: RuleTerms) -> RuleTerms:
    """Return the terms for a call asked in doubt: a fallback that would let it run belongs to a rule that was sure."""
    if terms.fallback.action in (FallbackAction.APPROVE, FallbackAction.VALUE):
        return terms.model_copy(update={"fallback": Fallback(), "unattended_approval": False})
    return terms


def _describe(error: Exception) -> str:
    return (str(error) if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}")[:MAX_ERROR_CHARS]
