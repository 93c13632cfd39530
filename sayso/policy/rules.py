"""Say what a rule may be: when it applies, what it does then, and how it asks. All of it is plain, checked data."""

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationInfo, field_validator

from sayso.policy.conditions import compile_condition
from sayso.policy.expressions import find_text_order
from sayso.records.base import Immutable
from sayso.records.terms import Fallback, FallbackAction, RuleTerms

JsonObject = dict[str, JsonValue]
RuleId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
MODEL_FACTS = ("model", "provider")
"""What `metadata` of a model call holds."""

_NEVER_JUDGED = {
    "subagent": "the start of a sub-agent is not judged; write `subagent: NAME`, which fits the tool calls it makes",
    "interaction": "interactions are not judged; leave it out, and the rule is about tool calls",
}


def _check_judged(name: object) -> object:
    """Refuse an event that nothing raises: a deny rule about it would be an open door."""
    for known, problem in _NEVER_JUDGED.items():
        if isinstance(name, str) and name.startswith(known):
            raise ValueError(problem)
    return name


EventType = Annotated[Literal["tool_before_execute", "llm_before_execute"], BeforeValidator(_check_judged)]


def _check_pattern(pattern: str) -> str:
    """A pattern that can never match makes a deny rule an open door, so it is refused."""
    if re.fullmatch(r"\s*\[.*,.*\]\s*", pattern):
        listed = ", ".join(part.strip().strip("\"'") for part in pattern.strip()[1:-1].split(","))
        raise ValueError(f"this is a list written as a text; write it without the outer quotes, as [{listed}]")
    for chars, end in re.findall(r"\[(!?\]?[^\]]*)(\]?)", pattern):
        if not end:
            raise ValueError("a [ has no ] that ends it; close it, or write [[] for the character itself")
        for first, last in re.findall(r"([^-!])-([^-])", chars):
            if first > last:
                raise ValueError(f"[{chars}] goes from {first} back to {last}, so nothing fits it; turn them round")
    return pattern


Glob = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_pattern)]


class Action(StrEnum):
    """What happens to an event. The word `defer` is read as request_approval."""

    ALLOW = "allow"
    DENY = "deny"
    REQUEST_APPROVAL = "request_approval"
    REQUEST_USER_INPUT = "request_user_input"

    @classmethod
    def _missing_(cls, value: object) -> "Action | None":
        return cls.REQUEST_APPROVAL if value == "defer" else None


ASKING = (Action.REQUEST_APPROVAL, Action.REQUEST_USER_INPUT)


class Subject(StrEnum):
    """What kind of thing an event is about; `any` in a rule means all of them."""

    ANY = "any"
    TOOL_CALL = "tool_call"
    LLM_CALL = "llm_call"


SUBJECTS: dict[str, Subject] = {"tool_before_execute": Subject.TOOL_CALL, "llm_before_execute": Subject.LLM_CALL}
"""What each type of event is about."""


class RuleCondition(Immutable):
    """When a rule applies: every part that is given must hold, and `when` is looked at last."""

    event_type: EventType | None = None
    tool_name: str | None = Field(default=None, min_length=1, max_length=200)
    tool_name_pattern: Glob | None = None
    tool_names: tuple[Glob, ...] | None = Field(default=None, min_length=1, max_length=1000)
    agent: Glob | None = None
    subagent_name: Glob | None = None
    context_equals: JsonObject = Field(default_factory=dict)
    context_has_keys: tuple[str, ...] = ()
    claimed_equals: JsonObject = Field(default_factory=dict)
    claimed_has_keys: tuple[str, ...] = ()
    metadata_equals: JsonObject = Field(default_factory=dict)
    when: str | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """The names and patterns of tools, of which one must fit; none for any tool."""
        alone = (one for one in (self.tool_name, self.tool_name_pattern) if one is not None)
        return (*alone, *(self.tool_names or ()))

    @field_validator("tool_name")
    @classmethod
    def _check_exact(cls, name: str | None) -> str | None:
        # A pattern taken for a name never matches, and a deny rule that never matches is an open door.
        if name is not None and any(sign in name for sign in "*?["):
            raise ValueError("this is a pattern, not a name; give it as tool_name_pattern")
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
            if (number := find_text_order(when)) is not None:
                raise ValueError(f'"{number}" is a text, which no number is more or less than; write {number}')
        return when


class RequestPayload(Immutable):
    """How a rule asks: the words a reviewer reads, and for a value where it goes and what it may be."""

    prompt: str | None = Field(default=None, max_length=20_000)
    target_arg: str | None = Field(default=None, min_length=1, max_length=200)
    response_schema: JsonObject | None = None
    choices: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, max_length=100)
    allow_edit: bool = True
    title: str | None = Field(default=None, max_length=200)
    metadata: JsonObject = Field(default_factory=dict)


class PolicyRule(Immutable):
    """One rule: when it applies, what it does, and under which terms it asks."""

    rule_id: RuleId
    action: Action
    priority: int = Field(default=100, ge=-1_000_000, le=1_000_000)
    enabled: bool = True
    subjects: tuple[Annotated[Subject, BeforeValidator(_check_judged)], ...] | None = Field(default=None, min_length=1)
    reason: str | None = Field(default=None, min_length=1, max_length=2000)
    condition: RuleCondition = RuleCondition()
    request_payload: RequestPayload | None = Field(default=None, validate_default=True)
    terms: RuleTerms = RuleTerms()

    def covers(self, subject: Subject) -> bool:
        """Return whether the rule is about events of this subject; about tool calls, where it does not say."""
        if self.condition.event_type is not None:
            return SUBJECTS[self.condition.event_type] is subject
        wanted = self.subjects or (Subject.TOOL_CALL,)
        return Subject.ANY in wanted or subject in wanted

    @field_validator("subjects")
    @classmethod
    def _check_subjects(cls, subjects: tuple[Subject, ...] | None, info: ValidationInfo) -> tuple[Subject, ...] | None:
        asks_person = info.data.get("action") in ASKING
        if asks_person and subjects and set(subjects) & {Subject.ANY, Subject.LLM_CALL}:
            raise ValueError(_ASKS_MODEL)
        return subjects

    @field_validator("condition")
    @classmethod
    def _check_condition(cls, condition: RuleCondition, info: ValidationInfo) -> RuleCondition:
        _check_events(condition, info.data.get("action"), info.data.get("subjects"))
        return condition

    @field_validator("request_payload")
    @classmethod
    def _check_payload(cls, payload: RequestPayload | None, info: ValidationInfo) -> RequestPayload | None:
        action = info.data.get("action")  # absent when it was itself wrong, which is told already
        if action is Action.REQUEST_USER_INPUT:
            _check_input(payload)
        elif action is not None and payload is not None:
            _check_no_input(payload, action)
        return payload

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: RuleTerms, info: ValidationInfo) -> RuleTerms:
        if "action" in info.data and "request_payload" in info.data:
            check_fallback(terms.fallback, info.data["action"], info.data["request_payload"])
        if info.data.get("action") in ASKING:
            check_quorum(terms)
        return terms


_ASKS_MODEL = "people are asked about tool calls alone; write `subjects: [tool_call]`, or let the rule allow or deny"


def _check_events(condition: RuleCondition, action: Action | None, subjects: tuple[Subject, ...] | None) -> None:
    """Refuse a condition that no event of these subjects can fit."""
    event = condition.event_type
    wanted = {SUBJECTS[event]} if event else set(subjects or (Subject.TOOL_CALL,))
    if event and subjects and not {Subject.ANY, *wanted} & set(subjects):
        raise ValueError(f"event {event} is none of the rule's subjects; leave one of the two out")
    if event and wanted == {Subject.LLM_CALL} and action in ASKING:
        raise ValueError(_ASKS_MODEL)
    if wanted == {Subject.LLM_CALL} and (condition.tools or condition.subagent_name is not None):
        raise ValueError("a model call has no tool and no sub-agent; take tool and subagent out")
    if condition.metadata_equals and wanted != {Subject.LLM_CALL}:
        raise ValueError("metadata is known of model calls alone; write `subjects: [llm_call]`, or take it out")


def same_json(a: Any, b: Any) -> bool:
    """Compare as JSON does: 1 is 1.0, but it is not true, which Python takes it for."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _check_input(payload: RequestPayload | None) -> None:
    if payload is None or payload.target_arg is None:
        raise ValueError("request_user_input puts the answer into an argument of the call; name it as target_arg")
    if payload.choices is not None and payload.response_schema is not None:
        raise ValueError("choices and response_schema both say which answers are right; give one of them")


def _check_no_input(payload: RequestPayload, action: Action) -> None:
    if action not in ASKING:
        raise ValueError(f"a rule that says {action} asks nobody; take this out, or let the rule ask")
    for name in ("target_arg", "response_schema", "choices"):
        if getattr(payload, name) is not None:
            raise ValueError(f"{name} is for a value; take it out, or let the rule say request_user_input")


def check_quorum(terms: RuleTerms) -> None:
    """Refuse a quorum that is more people than may decide."""
    people = {*terms.reviewers, *(name for step in terms.escalate for name in step.reviewers)}
    if terms.reviewers and max(terms.quorum.approve, terms.quorum.deny) > len(people):
        raise ValueError(f"the quorum takes more people than the {len(people)} who may decide; name more, or lower it")


def check_fallback(fallback: Fallback, action: Action, payload: RequestPayload | None) -> None:
    """Refuse a fallback that does not answer what is asked."""
    if action is Action.REQUEST_USER_INPUT and fallback.action is FallbackAction.APPROVE:
        raise ValueError("fallback approve has no value to put into the call; choose value, or deny")
    if action is Action.REQUEST_APPROVAL and fallback.action is FallbackAction.VALUE:
        raise ValueError("fallback value answers a rule that says request_user_input; choose deny here")
    choices = payload.choices if payload else None
    if fallback.action is FallbackAction.VALUE and choices and not any(same_json(fallback.value, x) for x in choices):
        raise ValueError("the fallback's value is none of the choices; give one of them")
