"""Cases beside the rules: calls with the action, and the rule, that they expect. They stand under `tests:`.

They may be in the file of the rules, or in a file beside it: `policy.cases.yaml` for `policy.yaml`.

The grant of a case: what a person has granted beside the approval of an earlier call.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.ledger import NO_READINGS, remember
from sayso.core.policy.counters.readings import Reading, Readings
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.faults import describe_unknown
from sayso.core.policy.files.yaml_documents import Document, Loc, read_document
from sayso.core.policy.rule_keys import Period
from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.envelopes import GrantRequest
from sayso.core.records.permissions import Grant
from sayso.core.time_windows import find_start_ms
from sayso.errors import InvalidInput, SaysoError
from sayso.features.permissions.grants import digest_rule, find_granting, list_counters, name_scope
from sayso.features.permissions.making import limit_grant
from sayso.features.whatif.explaining import Explanation, Match, explain

GRANTED_KEYS = ("call", "for", "ago", *(name for name in GrantRequest.model_fields if name != "for_s"))
_UNKNOWN = "unknown"


class Granted(GrantRequest):
    """What a person granted beside the approval of `event`, `ago` seconds before the call of the case."""

    event: PolicyEvent
    for_s: Period = Field(validation_alias="for")
    ago: Period = 0


def identify(event: PolicyEvent) -> PolicyEvent:
    """Return a call with a requester and a definition of its tool, which a grant names."""
    return event.model_copy(update={"started_by": event.started_by or _UNKNOWN, "definition": _UNKNOWN})


def read_granted(policy: Policy, granted: Granted, event: PolicyEvent) -> Readings:
    """Return what a call reads of grants, if no other was made; raises `InvalidInput` if this one cannot be made."""
    grant = _make(policy, granted, (event.at_ms or 0) - granted.ago * 1000)
    if granted.ago >= granted.for_s:
        return NO_READINGS
    counters = {counter.counter: Reading() for counter in list_counters(grant)}
    return {name_scope(grant.rule_id, grant.agent): Reading(grants=(grant,))} | counters


def _make(policy: Policy, granted: Granted, at_ms: int) -> Grant:
    call = identify(granted.event)
    decision = policy.judge(remember(policy, call))
    rule = find_granting(policy.rules, decision.policy_id)
    asks = decision.action is Action.REQUEST_APPROVAL and not decision.error and not decision.resembles
    if not asks or rule is None or rule.grants is None:
        by = f"rule {decision.policy_id}" if decision.policy_id is not None else "the default"
        raise InvalidInput(f"{by} lets nobody grant such calls")
    limits = limit_grant(rule, rule.grants, granted, call.tool_args, decision.terms.secrets, at_ms)
    return Grant(
        id="gra_case",
        rule_id=rule.rule_id,
        rule_digest=digest_rule(rule),
        agent=call.agent,
        owner=call.started_by or _UNKNOWN,
        subagent=call.subagent_name,
        tool=call.tool_name or "",
        definition=call.definition or _UNKNOWN,
        at_ms=at_ms,
        granters=(Actor(id="reviewer", kind=ActorKind.HUMAN),),
        suspension_id="sus_case",
        item_id="i1",
        **limits,
    )


KEY = "tests"
ASK = "ask"
DEFAULT = "default"
"""The name of the default in `rule`."""

_CALL_KEYS = {"tool": "tool_name", "args": "tool_args", "subagent": "subagent_name", "event": "event_type"}
_OTHERS = {*_CALL_KEYS.values(), "memory", "at_ms", "definition", "thread_id"}
_EVENT_KEYS = {name: name for name in PolicyEvent.model_fields if name not in _OTHERS} | _CALL_KEYS
_AT = "at"
"""When the agent asks: a date, or a time with a zone. Rules that read the time need it."""

CALL_KEYS = (*_EVENT_KEYS, _AT)
CASE_KEYS = ("name", "call", "granted", "after", "expect", "rule")
EXPECTATIONS = (ASK, *Action, "defer")


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


class CaseResult(Immutable):
    """How a case ended. `fault` says what differs; it is empty for a case that is as expected."""

    case: Case
    rule_id: str | None
    action: Action
    fault: str = ""


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
        case = _read_case(document, index, test)
        if case is not None:
            yield case


def place_case(policy: Policy, case: Case) -> tuple[PolicyEvent, str]:
    """Return the call of a case with its past, and why nobody could grant what the case says, if so."""
    event, readings, fault = case.event, NO_READINGS, ""
    if case.granted is not None:
        event = identify(event)
        try:
            readings = read_granted(policy, case.granted, event)
        except SaysoError as error:
            fault = f"granted: {error.message}"
    return remember(policy, event, case.after, readings), fault


def run_cases(policy: Policy, cases: list[Case]) -> list[CaseResult]:
    """Return how each case ends under the rules."""
    return [_run(policy, case) for case in cases]


def _read_case(document: Document, index: int, test: Any) -> Case | None:
    loc = (KEY, index)
    label = f"case {index + 1}: "
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
    return None if unknown else _build_case(document, loc, label, test)


def _build_case(document: Document, loc: Loc, label: str, test: dict[str, Any]) -> Case | None:
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


def _run(policy: Policy, case: Case) -> CaseResult:
    event, ungranted = place_case(policy, case)
    explanation = explain(policy, event)
    decision = explanation.decision
    done = decision.action in ASKING if case.expect == ASK else decision.action == case.expect
    wanted = None if case.rule == DEFAULT else case.rule
    right = case.rule is None or decision.policy_id == wanted
    fault = ungranted or ("" if done and right else _describe_fault(case, explanation))
    return CaseResult(case=case, rule_id=decision.policy_id, action=decision.action, fault=fault)


def _describe_fault(case: Case, explanation: Explanation) -> str:
    """Return what differs, such as `expected allow, but rule large says request_approval: args.amount > 100`."""
    decision = explanation.decision
    by = f"rule {decision.policy_id}" if decision.policy_id is not None else "the default"
    expected = case.expect if case.rule is None else f"{case.expect} by {_name(case.rule)}"
    if decision.error is not None and decision.policy_id is None:
        return f"expected {expected}, but a person is asked, because {decision.error}"
    trial = next((trial for trial in explanation.trials if trial.match is Match.DECIDES), None)
    when = trial.rule.condition.when if trial is not None else None
    saw = ", ".join(f"{name} is {value!r}" for name, value in trial.saw.items()) if trial is not None else ""
    because = f": {when}{f' ({saw})' if saw else ''}" if when is not None else ""
    return f"expected {expected}, but {by} says {decision.action}{because}"


def _name(rule: str) -> str:
    return "the default" if rule == DEFAULT else f"rule {rule}"
