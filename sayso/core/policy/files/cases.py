"""Cases beside the rules: calls with the action, and the rule, that they expect. They stand under `tests:`.

They may be in the file of the rules, or in a file beside it: `policy.cases.yaml` for `policy.yaml`.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from sayso.core.calendar import find_start_ms
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.faults import describe_unknown
from sayso.core.policy.files.yaml_documents import Document, Loc, read_document
from sayso.core.policy.rule_keys import Period
from sayso.core.policy.rules import Action
from sayso.core.records.base import Immutable
from sayso.core.records.envelopes import GrantRequest

GRANTED_KEYS = ("call", "for", "ago", *(name for name in GrantRequest.model_fields if name != "for_s"))
KEY = "tests"
ASK = "ask"
DEFAULT = "default"  # the name of the default in `rule`
_CALL_KEYS = {"tool": "tool_name", "args": "tool_args", "subagent": "subagent_name", "event": "event_type"}
_OTHERS = {*_CALL_KEYS.values(), "readings", "at_ms", "definition", "thread_id"}
_EVENT_KEYS = {name: name for name in PolicyEvent.model_fields if name not in _OTHERS} | _CALL_KEYS
_AT = "at"  # when the agent asks: a date, or a time with a zone. Rules that read the time need it.
CALL_KEYS = (*_EVENT_KEYS, _AT)
CASE_KEYS = ("name", "call", "granted", "after", "expect", "rule")
EXPECTATIONS = (ASK, *Action, "defer")


class Granted(GrantRequest):
    """What a person granted beside the approval of `event`, `ago` seconds before the call of the case."""

    event: PolicyEvent
    for_s: Period = Field(validation_alias="for")
    ago: Period = 0


class Case(Immutable):
    """A call, the action that it expects (or `ask`, in either way), and the rule that should decide it.

    `granted` is what a person granted before, and `after` how often the same call was let run since.
    """

    name: str = Field(max_length=200)
    place: str
    event: PolicyEvent
    granted: Granted | None = None
    after: int = Field(default=0, ge=0, le=1_000)
    expect: str
    rule: str | None = None

    @field_validator("expect")
    @classmethod
    def _check_expect(cls, expect: str) -> str:
        if expect not in EXPECTATIONS:
            raise ValueError(f"write {', '.join(EXPECTATIONS[:-2])} or {EXPECTATIONS[-2]}")
        return "request_approval" if expect == "defer" else expect


def find_cases_file(rules: Path) -> Path:
    """Return where the cases beside a file of rules are."""
    return rules.with_name(f"{rules.stem}.cases.yaml")


def read_cases(raw: bytes, file: str) -> tuple[list[Case], list[str]]:
    """Return the cases under `tests:` and the faults in them, each with its place; other keys are not read."""
    document = read_document(raw, file)
    content = document.content
    tests = content.get(KEY, []) if isinstance(content, dict) else []
    cases = list(check_cases(document, tests))
    return cases, [str(problem) for problem in sorted(document.problems)]


def check_cases(document: Document, tests: Any) -> Iterator[Case]:
    """Yield the usable cases, and report the faults of the others."""
    if not isinstance(tests, list):
        document.report((KEY,), f"{KEY}: must be a list of cases with `call` and `expect`")
        return
    for index, test in enumerate(tests):
        if case := _read_case(document, index, test):
            yield case


def _read_case(document: Document, index: int, test: Any) -> Case | None:
    loc, label = (KEY, index), f"case {index + 1}: "
    if not isinstance(test, dict) or not isinstance(test.get("call"), dict) or "expect" not in test:
        document.report(loc, f"{label}needs `call:` with a tool, and `expect:`")
        return None
    granted = test.get("granted", {})
    approved = granted.get("call", {}) if isinstance(granted, dict) else None
    if not isinstance(approved, dict):
        document.report((*loc, "granted"), f"{label}granted: write what was granted, such as {{for: 1h, count: 5}}")
        return None
    keys: list[tuple[Loc, dict[str, Any], Collection[str]]] = [
        (loc, test, CASE_KEYS),
        ((*loc, "call"), test["call"], CALL_KEYS),
        ((*loc, "granted"), granted, GRANTED_KEYS),
        ((*loc, "granted", "call"), approved, CALL_KEYS),
    ]
    unknown = [(place, key, known) for place, part, known in keys for key in part if key not in known]
    for place, key, known in unknown:
        document.report((*place, key), label + describe_unknown(key, known), at_key=True)
    if unknown:
        return None
    line, column = document.values[loc]
    name = str(test.get("name") or label.removesuffix(": "))
    fields = {"name": name, "place": f"{document.file}:{line}:{column}", "expect": test["expect"]}
    try:
        fields |= {"event": _read_call(test["call"]), "after": test.get("after", 0), "rule": test.get("rule")}
        if "granted" in test:
            limits = {key: value for key, value in test["granted"].items() if key != "call"}
            approved = {**test["call"], **test["granted"].get("call", {})}
            fields["granted"] = {**limits, "event": _read_call(approved)}
        return Case.model_validate(fields)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            where = ".".join(map(str, fault["loc"]))
            document.report(loc, f"{label}{where}: {fault['msg'].removeprefix('Value error, ')}")
    except ValueError as error:
        document.report((*loc, "call", _AT), f"{label}{_AT}: {error}")
    return None


def _read_call(call: dict[str, Any]) -> JsonObject:
    """Return the fields of an event; raises `ValueError` for a time that is none."""
    event: JsonObject = {"run_id": "run_case", "agent": "agent", "step": 1, "subagent_name": ""}
    event |= {_EVENT_KEYS[key]: value for key, value in call.items() if key != _AT}
    return event | ({"at_ms": find_start_ms(str(call[_AT]))} if _AT in call else {})
