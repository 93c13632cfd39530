"""Reading of rules from YAML: all rules or none. This needs the packages of `sayso[policies]`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.cases import KEY as TESTS
from sayso.core.policy.files.cases import check_cases
from sayso.core.policy.files.faults import LISTED, PARTS, PATTERN, describe_unknown, label, list_names, report_fault
from sayso.core.policy.files.yaml_documents import MAX_BYTES, Document, Loc, Problem, read_document
from sayso.core.policy.functions import Names, Stamp, lists
from sayso.core.policy.rules import Action
from sayso.core.records.terms import LONGEST_WAIT_S, RuleTerms
from sayso.core.schemas.validators import check_schema, check_value
from sayso.errors import InvalidInput, SaysoError

VERSION = 1
FILE_KEYS = ("version", "default", "terms", "model_prices", "lists", "constants", "rules", TESTS)

OF_RULES = frozenset(("unattended_approval", "veto"))
"""Terms that each rule states itself, not the file for all of them."""

DEFAULT_TERMS = RuleTerms()
NO_STAMPS: Mapping[Path, Stamp] = {}
Valid = TypeVar("Valid", bound=BaseModel)
CheckValue = Callable[[JsonObject, JsonValue, str], None]
"""Raise `InvalidInput` when a value, with its name, does not fit a JSON Schema."""

_ANY_JSON = {("ask", key) for key in ("choices", "response_schema", "metadata")} | {("fallback", "value")}
_ANY_JSON |= {(key, "equals") for key in ("context", "claimed", "metadata")}
"""Keys below which null is an ordinary value. Elsewhere, null means that a value is missing."""


class RulebookError(InvalidInput, ValueError):
    """The rules are invalid; correct the file and load it again."""

    def __init__(self, problems: Iterable[Problem], stamps: Mapping[Path, Stamp] = NO_STAMPS) -> None:
        self.problems = tuple(sorted(set(problems)))
        self.stamps = stamps
        super().__init__("\n".join(map(str, self.problems)), problems=self.problems)


def load_rulebook(path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS, check: CheckValue = check_value) -> Policy:
    """Return the policy of the file, as `parse_rulebook` does; without a file, everything is asked about."""
    if path is None:
        return Policy(default=Action.REQUEST_APPROVAL, terms=terms)
    return parse_beside(read_bytes(path), path, terms=terms, check=check)


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file of rules; raises `RulebookError`."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}; check its path and permissions"
        raise RulebookError([Problem(str(path), 1, 1, problem)]) from error


def parse_beside(
    raw: bytes,
    path: Path,
    *,
    terms: RuleTerms = DEFAULT_TERMS,
    check: CheckValue = check_value,
    texts: dict[str, str] | None = None,
) -> Policy:
    """Return the policy in the bytes of a file; its lists are beside it, and `texts` gets their texts by name."""
    folder = lists.Folder(path.parent)
    read = folder.read if texts is None else lists.keep_texts(folder.read, texts)
    try:
        policy = parse_rulebook(raw, file=str(path), terms=terms, check=check, read_list=read)
    except RulebookError as error:
        raise RulebookError(error.problems, folder.stamps) from error
    policy.stamps.update(folder.stamps)
    return policy


def parse_rulebook(
    raw: bytes,
    *,
    file: str,
    terms: RuleTerms = DEFAULT_TERMS,
    check: CheckValue = check_value,
    read_list: lists.ReadList = lists.refuse_files,
) -> Policy:
    """Return the policy in `raw`; raises `RulebookError` with every problem and its place in `file`."""
    document = read_document(raw, file)
    content = document.content
    if isinstance(content, dict):
        names = lists.read_names(document, content, read_list)
        policy = _read_policy(document, content, names, terms, check)
        if policy and not document.problems:
            return policy
    elif not document.problems:
        document.report((), "the file holds no rules; it needs `version: 1`, `default:` and `rules:`")
    raise RulebookError(document.problems)


def _read_policy(
    document: Document, content: dict[str, Any], names: Names, terms: RuleTerms, check: CheckValue
) -> Policy | None:
    _check_keys(document, (), content, FILE_KEYS)
    _check_nulls(document, (), content)
    if content.get("version") is True or content.get("version") != VERSION:
        document.report(("version",), f"version: write `version: {VERSION}`, the only supported version")
    start = _read_terms(document, content, terms)
    whole = {key: content[key] for key in ("default", "model_prices", "rules") if key in content} | {"terms": start}
    whole |= {key: dict(values) for key, values in names._asdict().items() if values}
    list(check_cases(document, content.get(TESTS, [])))
    rules = whole.get("rules")
    if isinstance(rules, list):
        first: dict[str, int] = {}
        for index, rule in enumerate(rules):
            rule_id = rule.get("id") if isinstance(rule, dict) else None
            if isinstance(rule_id, str) and first.setdefault(rule_id, index) != index:
                line, _ = document.values["rules", first[rule_id], "id"]
                problem = f"the id `{rule_id}` is used twice, first on line {line}; rename one"
                document.report(("rules", index, "id"), problem)
        lists.check_rules(document, rules, names)
        resolved = enumerate(lists.resolve_rules(document, rules, names))
        whole["rules"] = [_shape_rule(document, ("rules", index), rule, start, check) for index, rule in resolved]
    elif "rules" not in content:
        document.report((), "rules: is missing; add it, at least as `rules: []`")
    return _validate(document, Policy, whole)


def _read_terms(document: Document, content: dict[str, Any], terms: RuleTerms) -> dict[str, Any]:
    start, given = terms.model_dump(mode="json", exclude_unset=True), content.get("terms", {})
    if given is None:
        return start
    if not isinstance(given, dict):
        document.report(("terms",), "terms: must be a mapping, such as `timeout_s: 300` below it")
        return start
    for name in sorted(OF_RULES & given.keys()):
        problem = f"terms.{name}: belongs in each rule that needs it; move it there"
        document.report(("terms", name), problem, at_key=True)
    merged = _merge_terms(document, ("terms",), start, given)
    _check_moments(document, ("terms",), given, merged)
    return merged if _validate(document, RuleTerms, merged, ("terms",)) else start


def _shape_rule(document: Document, loc: Loc, rule: Any, start: dict[str, Any], check: CheckValue) -> Any:
    if not isinstance(rule, dict):
        return rule
    _check_keys(document, loc, rule, [part[0] for part in PARTS])
    shaped: dict[str, Any] = {"condition": {}, "terms": start}
    for part, value in _flatten(document, loc, rule):
        # A tool and an agent have other fields for lists, and a tool has one for a pattern.
        is_pattern = part == ("tool",) and isinstance(value, str) and any(sign in value for sign in "*?[")
        field = LISTED[part] if part in LISTED and isinstance(value, list) else PATTERN if is_pattern else PARTS[part]
        *outer, name = field
        (shaped["condition"] if outer else shaped)[name] = value
    if isinstance(shaped["terms"], dict):
        given = shaped["terms"]
        shaped["terms"] = _merge_terms(document, (*loc, "terms"), start, given)
        _check_moments(document, (*loc, "terms"), given, shaped["terms"])
        _check_answers(document, loc, rule, shaped["terms"].get("fallback"), check)
    return shaped


def _merge_terms(document: Document, loc: Loc, start: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the given terms over those of the file. A timeout of one kind replaces that of the other."""
    if {"timeout", "timeout_s"} <= given.keys():
        problem = "timeout and timeout_s both set the deadline; remove one"
        document.report((*loc, "timeout"), f"{label(document, loc)}{problem}", at_key=True)
    merged = start | given
    others = ("reviewers", "quorum") if "stages" in given else ("stages",) if {"reviewers", "quorum"} & {*given} else ()
    merged = {name: value for name, value in merged.items() if name in given or name not in others}
    if "timeout" in given:
        merged |= {"timeout_s": LONGEST_WAIT_S}  # the working time alone decides
    elif "timeout_s" in given:
        merged.pop("timeout", None)
    return merged


def _check_moments(document: Document, loc: Loc, given: dict[str, Any], merged: dict[str, Any]) -> None:
    """Report moments that come after the item is decided. Without a timeout the agent's own applies, unknown here."""
    limits, fallback = (merged.get("timeout_s"), merged.get("extend_by_s", 0)), merged.get("fallback")
    if not all(map(_is_number, limits)) or (isinstance(fallback, dict) and fallback.get("action") == "escalate"):
        return  # each escalation at a deadline moves it
    last_s = sum(limits)
    reminders, steps = given.get("remind_after_s"), given.get("escalate")
    moments: list[tuple[Loc, Any]] = []
    if isinstance(reminders, list):
        moments += [((*loc, "remind_after_s", index), after_s) for index, after_s in enumerate(reminders)]
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            moments.append(((*loc, "escalate", index, "after_s"), step.get("after_s")))
    for place, after_s in moments:
        if _is_number(after_s) and after_s >= last_s:
            problem = f"comes after the fallback, which decides after {last_s} s; make it earlier, or raise timeout_s"
            document.report(place, f"{label(document, place)}{problem}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_answers(document: Document, loc: Loc, rule: dict[str, Any], fallback: Any, check: CheckValue) -> None:
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
        faults = error.facts["problems"]
        problems = "; ".join(map(str, faults)) if isinstance(faults, list) else str(faults)
        document.report(place, f"{label(document, place)}is not usable: {problems}")


def _flatten(document: Document, loc: Loc, rule: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in rule.items():
        inner = [part[1] for part in PARTS if part[0] == key and len(part) > 1]
        if not inner:
            yield from [((key,), value)] if (key,) in PARTS else []
        elif isinstance(value, dict):
            _check_keys(document, (*loc, key), value, inner)
            yield from (((key, name), value[name]) for name in inner if name in value)
        elif value is not None:
            document.report((*loc, key), f"{label(document, (*loc, key))}must be a mapping with {list_names(inner)}")


def _check_keys(document: Document, loc: Loc, content: dict[str, Any], known: Iterable[str]) -> None:
    for key in content.keys() - set(known):
        document.report((*loc, key), label(document, loc) + describe_unknown(key, known), at_key=True)


def _check_nulls(document: Document, loc: Loc, value: Any) -> None:
    """Report keys without a value: an empty `when:`, if ignored, would make a rule match everything."""
    if loc[:1] == (TESTS,):
        return  # null may be an argument of a case
    if value is None and loc[-2:] != ("fallback", "value") and not document.has_problem(loc):
        document.report(loc, f"{label(document, loc)}has no value; add one, or remove the key", at_key=True)
    if isinstance(value, dict | list) and loc[-2:] not in _ANY_JSON:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            _check_nulls(document, (*loc, key), child)


def _validate(document: Document, model: type[Valid], value: dict[str, Any], loc: Loc = ()) -> Valid | None:
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            report_fault(document, (*loc, *fault["loc"]), fault)
    except SaysoError as error:
        document.report(loc, f"{label(document, loc)}{error}")
    return None
