"""Cases beside the rules: what they expect, and what they say when it does not happen."""

from pathlib import Path

import pytest

from sayso.core.policy.files.cases import find_cases_file, read_cases
from sayso.core.policy.files.reading import RulebookError, parse_rulebook
from sayso.features.whatif.cases import CaseResult, run_cases

RULES = """\
version: 1
default: deny
rules:
  - id: large
    priority: 200
    tool: refund
    when: args.amount > 100
    action: request_approval
  - id: small
    tool: refund
    action: allow
"""


def run(tests: str) -> list[CaseResult]:
    """Parse rules with cases, as a service does, and run the cases."""
    raw = (RULES + tests).encode()
    cases, faults = read_cases(raw, "policy.yaml")
    assert faults == []
    return run_cases(parse_rulebook(raw, file="policy.yaml"), cases)


def test_case_after_the_same_call_was_let_run() -> None:
    rules = RULES.replace("action: allow", "action: allow\n    limit: {count: 2, per: 1h}")
    raw = f"""{rules}tests:
  - {{call: {{tool: refund, args: {{amount: 5}}}}, expect: allow}}
  - {{call: {{tool: refund, args: {{amount: 5}}}}, after: 1, expect: allow}}
  - {{call: {{tool: refund, args: {{amount: 5}}}}, after: 2, expect: deny, rule: default}}
  - {{call: {{tool: refund, args: {{amount: 5}}}}, after: 1, expect: deny}}
""".encode()
    cases, faults = read_cases(raw, "policy.yaml")
    assert faults == []
    found = run_cases(parse_rulebook(raw, file="policy.yaml"), cases)
    assert [bool(one.fault) for one in found] == [False, False, False, True]


def test_cases_that_are_as_expected_have_no_fault() -> None:
    found = run("""\
tests:
  - {call: {tool: refund, args: {amount: 50}}, expect: allow, rule: small}
  - {call: {tool: refund, args: {amount: 500}}, expect: ask}
  - {call: {tool: refund, args: {amount: 500}}, expect: request_approval, rule: large}
  - {call: {tool: refund, args: {amount: 500}}, expect: defer}
  - {call: {tool: refund, args: {}}, expect: ask, name: without an amount}
  - {call: {tool: other, args: {note: null}, agent: bot, context: {a: 1}, step: 3}, expect: deny, rule: default}
  - {call: {event: llm_before_execute, metadata: {model: m}}, expect: allow}
""")
    assert [one.fault for one in found] == [""] * 7
    assert found[4].case.name == "without an amount"
    assert [one.rule_id for one in found[:2]] == ["small", "large"]


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (
            "{call: {tool: refund, args: {amount: 500}}, expect: allow}",
            "expected allow, but rule large says request_approval: args.amount > 100 (amount is 500)",
        ),
        (
            "{call: {tool: refund, args: {amount: 5}}, expect: allow, rule: large}",
            "expected allow by rule large, but rule small says allow",
        ),
        ("{call: {tool: other}, expect: allow}", "expected allow, but the default says deny"),
        (
            "{call: {tool: other}, expect: allow, rule: default}",
            "expected allow by the default, but the default says deny",
        ),
        (
            "{call: {tool: refund}, expect: allow}",
            'expected allow, but a person is asked, because rule large: Key not found in map : "amount"',
        ),
    ],
)
def test_case_that_is_not_as_expected_says_why(case: str, fault: str) -> None:
    (found,) = run(f"tests:\n  - {case}\n")
    assert (found.fault, found.case.place) == (fault, "policy.yaml:13:5")


@pytest.mark.parametrize(
    ("tests", "fault"),
    [
        ("tests: {}", "policy.yaml:12:8: tests: must be a list of cases"),
        ("tests:\n  - {call: {tool: a}}", "policy.yaml:13:5: case 1: needs `call:` with a tool, and `expect:`"),
        (
            "tests:\n  - {call: {tool: a}, expect: maybe}",
            "policy.yaml:13:5: case 1: expect: write ask, allow, deny, request_approval or request_user_input",
        ),
        (
            "tests:\n  - {call: {tol: a}, expect: deny}",
            "policy.yaml:13:13: case 1: there is no key `tol` here; did you mean `tool`?",
        ),
        ("tests:\n  - {call: {tool: 5}, expect: deny}", "policy.yaml:13:5: case 1: event.tool_name: "),
        ("tests:\n  - {cal: {tool: a}, call: {}, expect: deny}", "there is no key `cal` here; did you mean `call`?"),
    ],
)
def test_faulty_case_is_a_fault_of_the_file(tests: str, fault: str) -> None:
    _, faults = read_cases((RULES + tests).encode(), "policy.yaml")
    assert fault in "\n".join(faults)
    with pytest.raises(RulebookError) as caught:
        parse_rulebook((RULES + tests).encode(), file="policy.yaml")
    assert fault in caught.value.message


GRANTS = """\
version: 1
default: allow
rules:
  - {id: free, priority: 500, tool: refund, when: args.amount < 5, action: allow}
  - {id: asked, tool: refund, action: request_approval, grants: {longest: 1d, count: 3, by: [args.customer]}}
tests:
"""
CALL = "call: {tool: refund, args: {customer: C-1, amount: 50}}"


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("granted: {for: 1h}, expect: allow, rule: asked", ""),
        ("granted: {for: 1h, ago: 3599s}, expect: allow, rule: asked", ""),
        ("granted: {for: 1h, ago: 1h}, expect: ask, rule: asked", ""),
        ("granted: {for: 1h}, after: 3, expect: ask", ""),
        ("granted: {for: 1h, at_most: {args.amount: 49}}, expect: ask", ""),
        ("granted: {for: 1h, call: {args: {customer: C-2, amount: 50}}}, expect: ask", ""),
        ("granted: {for: 1h}, expect: deny", "expected deny, but rule asked says allow"),
        ("granted: {for: 2d}, expect: ask", "granted: The rule asked grants at most 1d, not 2d."),
        (
            "granted: {for: 1h, call: {args: {amount: 1}}}, expect: ask",
            "granted: rule free lets nobody grant such calls",
        ),
        ("granted: {for: 1h, call: {tool: other}}, expect: ask", "granted: the default lets nobody grant such calls"),
    ],
)
def test_case_with_a_grant_is_judged_as_if_a_person_had_given_it(test: str, fault: str) -> None:
    raw = f"{GRANTS}  - {{{CALL}, {test}}}\n".encode()
    cases, faults = read_cases(raw, "policy.yaml")
    assert faults == []
    (found,) = run_cases(parse_rulebook(raw, file="policy.yaml"), cases)
    assert (found.fault.startswith(fault), bool(found.fault)) == (True, bool(fault))


@pytest.mark.parametrize(
    ("granted", "fault"),
    [
        ("[1h]", "policy.yaml:7:72: case 1: granted: write what was granted, such as {for: 1h, count: 5}"),
        ("{call: 5, for: 1h}", "case 1: granted: write what was granted"),
        ("{count: 5}", "case 1: granted.for: Field required"),
        ("{for: 1h, cuont: 5}", "there is no key `cuont` here; did you mean `count`?"),
        ("{for: 1h, call: {tol: a}}", "there is no key `tol` here; did you mean `tool`?"),
        ("{for: an hour}", "case 1: granted.for: 'an hour' is not a period"),
        ("{for: 1h, same: [customer]}", "case 1: granted.same.0: "),
    ],
)
def test_faulty_grant_of_a_case_is_a_fault_of_the_file(granted: str, fault: str) -> None:
    _, faults = read_cases(f"{GRANTS}  - {{{CALL}, granted: {granted}, expect: ask}}\n".encode(), "policy.yaml")
    assert fault in "\n".join(faults)


def test_cases_do_not_change_the_version_of_the_rules() -> None:
    bare = parse_rulebook(RULES.encode(), file="a")
    tested = parse_rulebook((RULES + "tests: [{call: {tool: a}, expect: deny}]").encode(), file="a")
    assert bare.version == tested.version


def test_file_of_cases_stands_beside_the_rules() -> None:
    assert find_cases_file(Path("/etc/sayso/policy.yaml")) == Path("/etc/sayso/policy.cases.yaml")
