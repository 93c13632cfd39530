"""Read rules from a file or a text; report every fault with its place and what to do about it.

A rulebook is read whole or not at all. This takes the packages of `sayso[policies]`; `sayso.policy.packages` checks that
they are there.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.engine import Action, Policy
from sayso.policy.rules import RequestPayload
from sayso.policy.yaml_documents import MAX_BYTES, Document, Loc, Problem, read_document
from sayso.records.terms import EscalationStep, Fallback, Quorum, RuleTerms
from sayso.schemas.validators import check_schema, check_value

VERSION = 1
FILE_KEYS = ("version", "default", "terms", "rules")

DEFAULT_TERMS = RuleTerms()

Valid = TypeVar("Valid", bound=BaseModel)

CheckValue = Callable[[JsonObject, JsonValue, str], None]
"""Raise `InvalidInput` when a value, called by the name, does not fit a JSON Schema."""

# Where each part of a rule stands in the file, and where in the model. A tool's name may also be a pattern.
_PARTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("id",): ("rule_id",),
    ("action",): ("action",),
    ("priority",): ("priority",),
    ("enabled",): ("enabled",),
    ("subjects",): ("subjects",),
    ("reason",): ("reason",),
    ("event",): ("condition", "event_type"),
    ("tool",): ("condition", "tool_name"),
    ("agent",): ("condition", "agent"),
    ("subagent",): ("condition", "subagent_name"),
    ("context", "equals"): ("condition", "context_equals"),
    ("context", "has_keys"): ("condition", "context_has_keys"),
    ("claimed", "equals"): ("condition", "claimed_equals"),
    ("claimed", "has_keys"): ("condition", "claimed_has_keys"),
    ("metadata", "equals"): ("condition", "metadata_equals"),
    ("when",): ("condition", "when"),
    ("ask",): ("request_payload",),
    ("terms",): ("terms",),
}
_PATTERN = ("condition", "tool_name_pattern")
_NAMES = ("condition", "tool_names")
_INNER: dict[str, type[BaseModel]] = {
    "request_payload": RequestPayload,
    "terms": RuleTerms,
    "fallback": Fallback,
    "quorum": Quorum,
    "escalate": EscalationStep,
}
_ANY_JSON = {
    ("context", "equals"),
    ("claimed", "equals"),
    ("metadata", "equals"),
    ("ask", "choices"),
    ("ask", "response_schema"),
    ("ask", "metadata"),
    ("fallback", "value"),
}
"""Below these keys null is a value like others; anywhere else it is a key whose value was forgotten."""


class RulebookError(InvalidInput, ValueError):
    """The rules cannot be used as they are; correct the file and load it again."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)), problems=self.problems)


def load_rulebook(path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS, check: CheckValue = check_value) -> Policy:
    """Return the policy of the file, its rules' terms starting from `terms`; without a file everything is asked.

    Raises `RulebookError` with every problem of the file.
    """
    if path is None:
        return Policy(default=Action.REQUEST_APPROVAL, terms=terms)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}; check its path and permissions"
        raise RulebookError([Problem(str(path), 1, 1, problem)]) from error
    return parse_rulebook(raw, file=str(path), terms=terms, check=check)


def parse_rulebook(
    raw: bytes, *, file: str, terms: RuleTerms = DEFAULT_TERMS, check: CheckValue = check_value
) -> Policy:
    """Return the policy written in `raw`; raises `RulebookError` with every problem, each at its place in `file`.

    `check` checks a fallback's value against the rule's schema. The default does it in this process.
    """
    document = read_document(raw, file)
    content = document.content
    if isinstance(content, dict):
        policy = _read_policy(document, content, terms, check)
        if policy and not document.problems:
            return policy
    elif not document.problems:
        document.report((), "the file holds no rules; it needs `version: 1`, `default:` and `rules:`")
    raise RulebookError(document.problems)


def _read_policy(document: Document, content: dict[str, Any], terms: RuleTerms, check: CheckValue) -> Policy | None:
    _check_keys(document, (), content, FILE_KEYS)
    _check_nulls(document, (), content)
    if content.get("version") is True or content.get("version") != VERSION:
        document.report(("version",), f"version: write `version: {VERSION}`, the form of rulebook that is read here")
    start = _read_terms(document, content, terms)
    whole = {key: content[key] for key in ("default", "rules") if key in content} | {"terms": start}
    rules = whole.get("rules")
    if isinstance(rules, list):
        _check_ids(document, rules)
        shaped = (_shape_rule(document, ("rules", index), rule, start, check) for index, rule in enumerate(rules))
        whole["rules"] = list(shaped)
    elif "rules" not in content:
        document.report((), "rules: is missing; add it, if only as `rules: []`")
    return _validate(document, Policy, whole)


def _read_terms(document: Document, content: dict[str, Any], terms: RuleTerms) -> dict[str, Any]:
    """Return what the terms of every rule start from; faulty ones are told here once, not again in every rule."""
    start, given = terms.model_dump(mode="json", exclude_unset=True), content.get("terms", {})
    if given is None:
        return start
    if not isinstance(given, dict):
        document.report(("terms",), "terms: must be a mapping, such as `timeout_s: 300` below it")
        return start
    if "unattended_approval" in given:
        words = "terms.unattended_approval: is said by each rule that needs it, not for all; move it there"
        document.report(("terms", "unattended_approval"), words, at_key=True)
    merged = start | given
    _check_moments(document, ("terms",), given, merged)
    return merged if _validate(document, RuleTerms, merged, ("terms",)) else start


def _shape_rule(document: Document, loc: Loc, rule: Any, start: dict[str, Any], check: CheckValue) -> Any:
    """Return the rule in the model's form; what is no mapping stays as it is, for the model to refuse."""
    if not isinstance(rule, dict):
        return rule
    _check_keys(document, loc, rule, [part[0] for part in _PARTS])
    shaped: dict[str, Any] = {"condition": {}, "terms": start}
    for part, value in _flatten(document, loc, rule):
        *outer, name = _place_tool(value) if part == ("tool",) else _PARTS[part]
        (shaped["condition"] if outer else shaped)[name] = value
    if isinstance(shaped["terms"], dict):
        given, shaped["terms"] = shaped["terms"], start | shaped["terms"]
        _check_moments(document, (*loc, "terms"), given, shaped["terms"])
        _check_answers(document, loc, rule, shaped["terms"].get("fallback"), check)
    return shaped


def _check_moments(document: Document, loc: Loc, given: dict[str, Any], merged: dict[str, Any]) -> None:
    """Report what these terms themselves set for a moment at which the item is no longer open.

    An agent's own timeout counts where none is written, so nothing is known then.
    """
    limits, fallback = (merged.get("timeout_s"), merged.get("extend_by_s", 0)), merged.get("fallback")
    if not all(map(_is_number, limits)) or (isinstance(fallback, dict) and fallback.get("action") == "escalate"):
        return  # each step called in at a deadline moves it
    last_s = sum(limits)
    reminders, steps = given.get("remind_after_s"), given.get("escalate")
    moments: list[tuple[Loc, Any]] = []
    if isinstance(reminders, list):
        moments += [((*loc, "remind_after_s", index), after_s) for index, after_s in enumerate(reminders)]
    if isinstance(steps, list):
        moments += [
            ((*loc, "escalate", index, "after_s"), step.get("after_s"))
            for index, step in enumerate(steps)
            if isinstance(step, dict)
        ]
    for place, after_s in moments:
        if _is_number(after_s) and after_s >= last_s:
            words = f"comes when the fallback has decided, {last_s} s after the asking; make it earlier, or that later"
            document.report(place, f"{_label(document, place)}{words}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_answers(document: Document, loc: Loc, rule: dict[str, Any], fallback: Any, check: CheckValue) -> None:
    """Report a schema that no answer can be checked by, and a fallback's value that does not fit it."""
    ask = rule.get("ask")
    schema = ask.get("response_schema") if isinstance(ask, dict) else None
    if not isinstance(schema, dict):
        return
    place = (*loc, "ask", "response_schema")
    try:
        check_schema(schema)
        if isinstance(fallback, dict) and "value" in fallback:
            place = (*loc, "terms", "fallback", "value")
            check(schema, fallback["value"], "value")
    except InvalidInput as error:
        document.report(place, f"{_label(document, place)}does not serve: {_list_problems(error)}")


def _list_problems(error: InvalidInput) -> str:
    found = error.facts["problems"]
    return "; ".join(map(str, found)) if isinstance(found, list) else str(found)


def _flatten(document: Document, loc: Loc, rule: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the parts of a rule that are known, those of a nested mapping one by one."""
    for key, value in rule.items():
        inner = [part[1] for part in _PARTS if part[0] == key and len(part) > 1]
        if not inner:
            yield from [((key,), value)] if (key,) in _PARTS else []
        elif isinstance(value, dict):
            _check_keys(document, (*loc, key), value, inner)
            yield from (((key, name), value[name]) for name in inner if name in value)
        elif value is not None:
            document.report((*loc, key), f"{_label(document, (*loc, key))}must be a mapping with {_listed(inner)}")


def _place_tool(value: Any) -> tuple[str, ...]:
    """Return where in the model a rule's tool stands: a name, a pattern, or a list of both."""
    if isinstance(value, list):
        return _NAMES
    return _PATTERN if isinstance(value, str) and any(sign in value for sign in "*?[") else _PARTS["tool",]


def _check_ids(document: Document, rules: list[Any]) -> None:
    first: dict[str, int] = {}
    for index, rule in enumerate(rules):
        rule_id = rule.get("id") if isinstance(rule, dict) else None
        if isinstance(rule_id, str) and first.setdefault(rule_id, index) != index:
            line, _ = document.values["rules", first[rule_id], "id"]
            document.report(
                ("rules", index, "id"), f"the id `{rule_id}` is used twice, first on line {line}; rename one"
            )


def _check_keys(document: Document, loc: Loc, found: dict[str, Any], known: Iterable[str]) -> None:
    for key in found.keys() - set(known):
        document.report((*loc, key), _label(document, loc) + _unknown(key, known), at_key=True)


def _check_nulls(document: Document, loc: Loc, value: Any) -> None:
    """Report keys whose value was forgotten: taken for absent, an empty `when:` would let a rule match everything."""
    if value is None and loc[-2:] != ("fallback", "value") and not document.is_told(loc):
        document.report(loc, f"{_label(document, loc)}has no value; write one, or take the key out", at_key=True)
    if isinstance(value, dict | list) and loc[-2:] not in _ANY_JSON:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            _check_nulls(document, (*loc, key), child)


def _validate(document: Document, model: type[Valid], value: dict[str, Any], loc: Loc = ()) -> Valid | None:
    """Return the model made from `value`, or None with every fault reported."""
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            _report_fault(document, (*loc, *fault["loc"]), fault)
    except SaysoError as error:
        document.report(loc, f"{_label(document, loc)}{error}")
    return None


def _report_fault(document: Document, loc: Loc, fault: ErrorDetails) -> None:
    kind, shown, place = fault["type"], repr(fault["input"])[:80], _unshape(loc)
    if fault["input"] is None and document.is_told(place):
        return  # a forgotten value
    if kind == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"]:
        return  # one of its parts is wrong, which is told where it stands
    if loc == ("rules",) and kind == "value_error":
        return  # an id that is used twice, told where it stands
    label = _label(document, place)
    if kind == "missing":
        document.report(place, f"{label}is missing; add it")
    elif kind == "extra_forbidden":
        holder = next(name for name in reversed(loc[:-1]) if isinstance(name, str))
        words = _label(document, place[:-1]) + _unknown(str(loc[-1]), _INNER[holder].model_fields)
        document.report(place, words, at_key=True)
    elif kind == "value_error":
        document.report(place, f"{label}{fault['ctx']['error']}")
    elif kind == "string_type":
        document.report(place, f"{label}must be a text, not {shown}; put it in quotes")
    else:
        document.report(place, f"{label}{_in_yaml(fault['msg'])}, not {shown}")


def _in_yaml(words: str) -> str:
    """Return a sentence of the model's in the words of the file."""
    words = re.sub(r"^(Input|String|Tuple) should", "must", words.partition(", not ")[0])
    return words.replace("an object", "a mapping").replace("array", "list").replace(" after validation", "")


def _unshape(loc: Loc) -> Loc:
    """Return where in the file the part at `loc` of the model stands."""
    if loc[:1] != ("rules",) or len(loc) < 3:
        return loc
    if loc[2:] == ("condition",):
        return loc[:2]  # its parts stand in the rule itself
    for part, field in (*_PARTS.items(), (("tool",), _PATTERN), (("tool",), _NAMES)):
        if loc[2 : 2 + len(field)] == field:
            return (*loc[:2], *part, *loc[2 + len(field) :])
    return loc


def _label(document: Document, loc: Loc) -> str:
    """Return how a person calls the place, such as `rule refunds: ask.prompt: `."""
    words, rest = "", loc
    if loc[:1] == ("rules",) and len(loc) > 1 and isinstance(loc[1], int):
        rule = document.content["rules"][loc[1]]
        name = rule.get("id") if isinstance(rule, dict) else None
        words, rest = f"rule {name if isinstance(name, str) else loc[1] + 1}: ", loc[2:]
    return words + (".".join(map(str, rest)) + ": " if rest else "")


def _unknown(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"there is no key `{key}` here; " + (f"did you mean `{close[0]}`?" if close else f"use {_listed(known)}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in dict.fromkeys(words))
