"""Frozen models for rules: when a rule applies, what it does, and how it asks."""

import re
from collections.abc import Collection
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationInfo, field_validator

from sayso.core.calendar import Day, Moment, TimeWindow, find_end_ms, find_start_ms
from sayso.core.canonical_json import JsonObject
from sayso.core.policy import rule_keys
from sayso.core.policy.conditions import compile_condition, find_misnamed, find_text_order, reads_any
from sayso.core.policy.managers import names_managers, refuse_expressions
from sayso.core.records.base import Immutable, is_empty
from sayso.core.records.terms import (
    CONFIRMED_BY,
    Fallback,
    FallbackAction,
    RuleTerms,
    check_each_of,
    may_reach,
    merge_stages,
)

RuleId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
MODEL_FACTS = ("model", "provider")  # the keys in `metadata` of a model call
_NEVER_JUDGED = {
    "subagent": "the start of a sub-agent is not evaluated; write `subagent: NAME`, which matches its tool calls",
    "interaction": "interactions are not evaluated; remove it, and the rule covers tool calls",
}


def _check_judged(name: object) -> object:
    """Refuse an event that never occurs: a deny rule for it would deny nothing."""
    for known, problem in _NEVER_JUDGED.items():
        if isinstance(name, str) and name.startswith(known):
            raise ValueError(problem)
    return name


EventType = Annotated[Literal["tool_before_execute", "llm_before_execute"], BeforeValidator(_check_judged)]


def _check_pattern(pattern: str) -> str:
    """Refuse a pattern that can never match: a deny rule with it would deny nothing."""
    if re.fullmatch(r"\s*\[.*,.*\]\s*", pattern):
        listed = ", ".join(part.strip().strip("\"'") for part in pattern.strip()[1:-1].split(","))
        raise ValueError(f"this is a list written as a text; write it without the outer quotes, as [{listed}]")
    for chars, end in re.findall(r"\[(!?\]?[^\]]*)(\]?)", pattern):
        if not end:
            raise ValueError("a [ has no closing ]; close it, or write [[] for the character itself")
        for first, last in re.findall(r"([^-!])-([^-])", chars):
            if first > last:
                raise ValueError(f"[{chars}] goes from {first} back to {last} and matches nothing; swap them")
    return pattern


Glob = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_pattern)]


class Action(StrEnum):
    """The effect of a rule. `defer` is read as request_approval."""

    ALLOW = "allow"
    DENY = "deny"
    REQUEST_APPROVAL = "request_approval"
    REQUEST_USER_INPUT = "request_user_input"

    @classmethod
    def _missing_(cls, value: object) -> "Action | None":
        return cls.REQUEST_APPROVAL if value == "defer" else None


ASKING = (Action.REQUEST_APPROVAL, Action.REQUEST_USER_INPUT)
_ASKS_MODEL = "only tool calls can be asked about; write `subjects: [tool_call]`, or use allow or deny"
_SHADOWS_MODEL = "a shadow rule is for tool calls; write `subjects: [tool_call]`, or remove `mode: shadow`"


class Subject(StrEnum):
    """The kind of an event; `any` in a rule means all kinds."""

    ANY = "any"
    TOOL_CALL = "tool_call"
    LLM_CALL = "llm_call"


SUBJECTS: dict[str, Subject] = {"tool_before_execute": Subject.TOOL_CALL, "llm_before_execute": Subject.LLM_CALL}


class RuleCondition(Immutable):
    """When a rule applies: all given parts must match; `when` is evaluated last."""

    event_type: EventType | None = None
    tool_name: str | None = Field(default=None, min_length=1, max_length=200)
    tool_name_pattern: Glob | None = None
    tool_names: tuple[Glob, ...] | None = Field(default=None, min_length=1, max_length=1000)
    agent: Glob | None = None
    agents: tuple[Glob, ...] | None = Field(default=None, min_length=1, max_length=1000)
    subagent_name: Glob | None = None
    after: Annotated[tuple[Glob, ...] | None, BeforeValidator(rule_keys.read_names)] = Field(
        None, min_length=1, max_length=1000
    )
    context_equals: JsonObject = Field(default_factory=dict)
    context_has_keys: tuple[str, ...] = ()
    claimed_equals: JsonObject = Field(default_factory=dict)
    claimed_has_keys: tuple[str, ...] = ()
    metadata_equals: JsonObject = Field(default_factory=dict)
    during: TimeWindow | None = None
    outside: TimeWindow | None = None
    when: str | None = None
    limit: rule_keys.Limit | None = None
    budget: rule_keys.Budget | None = None
    over: rule_keys.Over | None = None
    unseen: rule_keys.Unseen | None = None
    above: rule_keys.Above | None = None
    repeats: rule_keys.Repeats | None = None

    @cached_property
    def counters(self) -> rule_keys.Stated:
        """The keys of the rule that remember earlier calls, with what each states; empty for most rules."""
        return rule_keys.list_stated(vars(self))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names and patterns, one of which must match; none for any tool."""
        alone = (self.tool_name, self.tool_name_pattern)
        return (*(name for name in alone if name is not None), *(self.tool_names or ()))

    @field_validator("tool_name")
    @classmethod
    def _check_exact(cls, name: str | None) -> str | None:
        # A pattern as a name never matches, so a deny rule with it would deny nothing.
        if name is not None and any(sign in name for sign in "*?["):
            raise ValueError("this is a pattern, not a name; use tool_name_pattern")
        return name

    @field_validator("metadata_equals")
    @classmethod
    def _check_metadata(cls, wanted: JsonObject) -> JsonObject:
        for name, value in wanted.items():
            if name not in MODEL_FACTS:
                raise ValueError(f"there is no {name!r} in metadata; use {' or '.join(MODEL_FACTS)}")
            if not isinstance(value, str):
                raise ValueError(f"{name} is a text, so it never equals {value!r}; put it in quotes")
        return wanted

    @field_validator("when")
    @classmethod
    def _check_expression(cls, when: str | None) -> str | None:
        if when is not None:
            compile_condition(when)
            if (fault := find_misnamed(when)) is not None:
                raise ValueError(fault)
            if (number := find_text_order(when)) is not None:
                raise ValueError(f'"{number}" is a text, which cannot be compared with a number; write {number}')
        return when


class RequestPayload(Immutable):
    """The texts that a rule shows to reviewers, and for a value its argument and valid answers."""

    prompt: str | None = Field(default=None, max_length=20_000)
    target_arg: str | None = Field(default=None, min_length=1, max_length=200)
    response_schema: JsonObject | None = None
    choices: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, max_length=100)
    allow_edit: bool = True
    title: str | None = Field(default=None, max_length=200)
    metadata: JsonObject = Field(default_factory=dict)


class Mode(StrEnum):
    """Whether a rule decides. A shadow rule is judged beside the live ones and decides nothing."""

    LIVE = "live"
    SHADOW = "shadow"


class PolicyRule(rule_keys.Restrained):
    """One rule: its condition, its action and its terms. Nothing lifts the denial of an `absolute` rule.

    Outside `valid_from` and `valid_until` a rule does not apply. `owner` and `review_by` are for people.
    """

    rule_id: RuleId
    action: Action
    priority: int = Field(default=100, ge=-1_000_000, le=1_000_000)
    enabled: bool = True
    mode: Mode = Mode.LIVE
    absolute: bool = False
    valid_from: Moment | None = None
    valid_until: Moment | None = Field(default=None, validate_default=True)
    owner: str | None = Field(default=None, min_length=1, max_length=200)
    review_by: Day | None = None
    subjects: tuple[Annotated[Subject, BeforeValidator(_check_judged)], ...] | None = Field(default=None, min_length=1)
    reason: str | None = Field(default=None, min_length=1, max_length=2000)
    condition: RuleCondition = RuleCondition()
    request_payload: RequestPayload | None = Field(default=None, validate_default=True)
    terms: RuleTerms = RuleTerms()
    grants: Annotated[rule_keys.Grants | None, AfterValidator(rule_keys.check_grants)] = None
    mandates: Annotated[rule_keys.Grants | None, AfterValidator(rule_keys.check_grants)] = None
    assess: Annotated[rule_keys.Assess | None, AfterValidator(rule_keys.check_assess)] = Field(
        default=None, exclude_if=is_empty
    )

    @property
    def is_live(self) -> bool:
        return self.enabled and self.mode is Mode.LIVE

    @property
    def has_dates(self) -> bool:
        return self.valid_from is not None or self.valid_until is not None

    @cached_property
    def reads_time(self) -> bool:
        condition = self.condition
        windows = condition.during is not None or condition.outside is not None
        return self.has_dates or windows or (condition.when is not None and reads_any(condition.when, ("now",)))

    def is_valid(self, at_ms: int) -> bool:
        begun = self.valid_from is None or find_start_ms(self.valid_from) <= at_ms
        return begun and (self.valid_until is None or at_ms < find_end_ms(self.valid_until))

    @cached_property
    def names_managers(self) -> bool:
        """Whether the rule asks the manager of a person behind the run."""
        asks = self.action in ASKING or self.terms.veto is not None
        return asks and names_managers(self.terms)

    def covers(self, subject: Subject) -> bool:
        """Return whether the rule covers events of this subject. Without subjects it covers tool calls."""
        if self.condition.event_type is not None:
            return SUBJECTS[self.condition.event_type] is subject
        wanted = self.subjects or (Subject.TOOL_CALL,)
        return Subject.ANY in wanted or subject in wanted

    @field_validator("absolute")
    @classmethod
    def _check_absolute(cls, absolute: bool, info: ValidationInfo) -> bool:
        if absolute and info.data.get("action", Action.DENY) is not Action.DENY:
            raise ValueError("only a rule with `action: deny` can be absolute; remove this, or change the action")
        return absolute

    @field_validator("valid_until")
    @classmethod
    def _check_order(cls, valid_until: str | None, info: ValidationInfo) -> str | None:
        valid_from = info.data.get("valid_from")
        if valid_until is not None and valid_from is not None and find_end_ms(valid_until) <= find_start_ms(valid_from):
            raise ValueError("valid_until comes before valid_from, so the rule never applies; correct one of them")
        return valid_until

    @field_validator("subjects")
    @classmethod
    def _check_subjects(cls, subjects: tuple[Subject, ...] | None, info: ValidationInfo) -> tuple[Subject, ...] | None:
        if info.data.get("action") in ASKING and {Subject.ANY, Subject.LLM_CALL}.intersection(subjects or ()):
            raise ValueError(_ASKS_MODEL)
        if info.data.get("mode") is Mode.SHADOW and {Subject.ANY, Subject.LLM_CALL}.intersection(subjects or ()):
            raise ValueError(_SHADOWS_MODEL)
        return subjects

    @field_validator("condition")
    @classmethod
    def _check_condition(cls, condition: RuleCondition, info: ValidationInfo) -> RuleCondition:
        event, subjects = condition.event_type, info.data.get("subjects")
        wanted = {SUBJECTS[event]} if event else set(subjects or (Subject.TOOL_CALL,))
        if action := info.data.get("action"):
            rule_keys.check_counters(
                condition.counters, allows=action is Action.ALLOW, models=wanted != {Subject.TOOL_CALL}
            )
        if event and subjects and not {Subject.ANY, *wanted} & set(subjects):
            raise ValueError(f"event {event} is none of the rule's subjects; remove one of the two")
        if event and wanted == {Subject.LLM_CALL} and info.data.get("action") in ASKING:
            raise ValueError(_ASKS_MODEL)
        if event and wanted == {Subject.LLM_CALL} and info.data.get("mode") is Mode.SHADOW:
            raise ValueError(_SHADOWS_MODEL)
        if wanted == {Subject.LLM_CALL} and (condition.tools or condition.subagent_name is not None):
            raise ValueError("a model call has no tool and no sub-agent; remove tool and subagent")
        if condition.metadata_equals and wanted != {Subject.LLM_CALL}:
            raise ValueError("only model calls have metadata; write `subjects: [llm_call]`, or remove it")
        return condition

    @field_validator("request_payload")
    @classmethod
    def _check_payload(cls, payload: RequestPayload | None, info: ValidationInfo) -> RequestPayload | None:
        action = info.data.get("action")  # missing when invalid, which is reported itself
        if action is Action.REQUEST_USER_INPUT:
            if payload is None or payload.target_arg is None:
                raise ValueError("request_user_input needs the argument that takes the answer; add it as target_arg")
            if payload.choices is not None and payload.response_schema is not None:
                raise ValueError("choices and response_schema both define valid answers; remove one of them")
        elif action is not None and payload is not None:
            if action not in ASKING:
                raise ValueError(f"a rule with the action {action} asks nobody; remove this, or use request_approval")
            for name in ("target_arg", "response_schema", "choices"):
                if getattr(payload, name) is not None:
                    raise ValueError(f"{name} needs the action request_user_input; remove it, or change the action")
        return payload

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: RuleTerms, info: ValidationInfo) -> RuleTerms:
        if "action" in info.data and "request_payload" in info.data:
            check_fallback(terms.fallback, info.data["action"], info.data["request_payload"])
        if info.data.get("action") is Action.REQUEST_USER_INPUT and terms.stages:
            raise ValueError("one person gives a value, so it has no stages; name reviewers, or use request_approval")
        if terms.veto is not None and "action" in info.data:
            check_veto(terms, info.data["action"], info.data.get("subjects"), info.data.get("condition"))
        if info.data.get("action") in ASKING:
            check_quorum(terms)
        rule_keys.check_outsiders(terms, asks=info.data.get("action", Action.REQUEST_APPROVAL) == "request_approval")
        return terms


def same_json(a: Any, b: Any) -> bool:
    """Compare as JSON: 1 equals 1.0, but not true, unlike in Python."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def check_sample(terms: RuleTerms, people: Collection[str]) -> None:
    """Raise `ValueError` for shares that need more people than the reviewers are."""
    if not terms.reviewers or terms.sample is None:
        return
    approvals = terms.quorum.approve + (terms.sample.before is not None)
    if not may_reach(people, approvals):
        raise ValueError(
            f"an item drawn by sample needs {approvals} approvals and has {len(people)} reviewers; "
            "add reviewers, or remove sample"
        )
    if terms.sample.after is not None and not may_reach(people, approvals + 1):
        raise ValueError(
            f"a second look needs a reviewer who did not decide, but all {len(people)} may have to; "
            "add reviewers, or remove sample.after"
        )


def check_quorum(terms: RuleTerms) -> None:
    """Refuse a quorum that exceeds the number of reviewers, and managers of people whom Sayso does not know."""
    refuse_expressions(terms.named)
    deciding = merge_stages(terms)
    people = {*deciding.reviewers, *(name for step in terms.escalate for name in step.reviewers)}
    if terms.confirm_by not in (None, CONFIRMED_BY):
        raise ValueError(f"confirm_by cannot be {terms.confirm_by!r}; write {CONFIRMED_BY}")
    check_each_of(terms.quorum, terms.reviewers)
    check_sample(deciding, people)
    if terms.reviewers and not may_reach(people, max(terms.quorum.approve, terms.quorum.deny)):
        raise ValueError(f"the quorum exceeds the {len(people)} reviewers who may decide; add reviewers, or lower it")


def check_veto(
    terms: RuleTerms, action: Action, subjects: Collection[Subject] | None, condition: RuleCondition | None
) -> None:
    """Refuse a veto where nothing runs at once, and terms that could not ask people where a tool has no undo."""
    if action is not Action.ALLOW:
        raise ValueError(f"a rule with the action {action} lets nothing run at once; remove veto, or use allow")
    of_models = condition is not None and condition.event_type == "llm_before_execute"
    if of_models or {Subject.ANY, Subject.LLM_CALL}.intersection(subjects or ()):
        raise ValueError("a model call cannot be undone; write `subjects: [tool_call]`, or remove veto")
    if terms.confirm_by is not None:
        raise ValueError("nobody confirms a call that runs at once; remove veto, or confirm_by")
    check_quorum(terms)


def check_fallback(fallback: Fallback, action: Action, payload: RequestPayload | None) -> None:
    """Refuse a fallback that cannot decide such an item."""
    if action is Action.REQUEST_USER_INPUT and fallback.action is FallbackAction.APPROVE:
        raise ValueError("fallback approve has no value for the call; choose value or deny")
    if action is Action.REQUEST_APPROVAL and fallback.action is FallbackAction.VALUE:
        raise ValueError("fallback value needs the action request_user_input; choose deny")
    choices = (payload.choices if payload else None) or ()
    if fallback.action is FallbackAction.VALUE and choices and not any(same_json(fallback.value, x) for x in choices):
        raise ValueError("the fallback's value is none of the choices; use one of them")
