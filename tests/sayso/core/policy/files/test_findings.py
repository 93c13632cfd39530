"""Findings in rules that load but do not work."""

from typing import Any

import pytest

from sayso.core.calendar import find_end_ms
from sayso.core.policy.conditions import Comparison, find_args, find_comparisons, find_text_order
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.files.reading import load_rulebook
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition
from service.core.settings import CHECKOUT
from tests.sayso.rule_builders import policy, rule

REFUND = ToolDefinition(
    name="refund",
    parameters={
        "type": "object",
        "properties": {"amount": {"type": "number"}, "order": {"type": "string"}, "note": {"type": ["string", "null"]}},
    },
)
OPEN = ToolDefinition(name="anything", parameters={"type": "object"})
TOOLS = Known(tools={"support": (REFUND, OPEN)})
NOTHING = Known()
PEOPLE = {"anna": True, "ben": True, "carla": False}


NIGHT = {"hours": "22:00-06:00", "zone": "Europe/Zurich"}


def found(*rules: PolicyRule, known: Known = NOTHING, **parts: Any) -> list[str]:
    return find_findings(policy(*rules, **parts), known)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({}, {"tool_name": "pay"}),
        ({"tool_name": "pay"}, {"tool_name": "pay", "when": "args.amount > 5"}),
        ({"tool_name_pattern": "pay_*"}, {"tool_name": "pay_bill"}),
        ({"tool_name_pattern": "pay_*"}, {"tool_name_pattern": "pay_b*"}),
        ({"tool_names": ["a", "b*"]}, {"tool_names": ["b1", "a"]}),
        ({"tool_name": "pay", "when": "args.x == 1"}, {"tool_name": "pay", "when": "args.x == 1"}),
        ({"context_has_keys": ["env"]}, {"context_equals": {"env": "prod"}}),
        ({"subjects": ["any"]}, {"subjects": ["llm_call"]}),
        ({}, {"during": NIGHT, "valid_until": "2026-12-01"}),
        ({"outside": NIGHT, "valid_from": "2026-12-01"}, {"outside": NIGHT, "valid_from": "2026-12-01"}),
    ],
)
def test_find_findings_unreachable_rule(first: dict[str, Any], later: dict[str, Any]) -> None:
    (finding,) = found(rule("a", **first), rule("b", **later))
    assert finding.startswith("rule b: never decides, because rule a is tried first and matches all its calls; raise")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"tool_name": "pay"}, {}),
        ({"tool_name": "pay"}, {"tool_name_pattern": "pay*"}),
        ({"tool_name": "pay", "when": "args.x == 1"}, {"tool_name": "pay"}),
        ({"tool_name": "pay", "agent": "a"}, {"tool_name": "pay"}),
        ({"tool_name": "pay", "subagent_name": "a"}, {"tool_name": "pay"}),
        ({"context_equals": {"env": "prod"}}, {"context_has_keys": ["env"]}),
        ({"claimed_equals": {"env": "prod"}}, {"context_equals": {"env": "prod"}}),
        ({"enabled": False}, {"tool_name": "pay"}),
        ({}, {"subjects": ["llm_call"]}),
        ({"during": NIGHT}, {}),
        ({"outside": NIGHT}, {"during": NIGHT}),
        ({"valid_until": "2026-12-01"}, {}),
        ({"mode": "shadow"}, {}),
        ({"tool_name": "pay", "repeats": {"within": 60}}, {"tool_name": "pay"}),
        ({"tool_name": "pay", "over": {"limit": {"count": 1, "per": 60}}}, {"tool_name": "pay"}),
        ({"tool_name": "pay", "unseen": {"value": "args.to", "within": 60}}, {"tool_name": "pay"}),
    ],
)
def test_find_findings_reachable_rule(first: dict[str, Any], later: dict[str, Any]) -> None:
    assert found(rule("a", **first), rule("b", **later)) == []


def test_find_findings_allow_before_an_equal_deny() -> None:
    allow = rule("a-lookups", "allow", tool_name_pattern="db_*", when="args.limit < 10")
    deny = rule("b-secrets", tool_name="db_read", when="args.table == 'keys'")
    (finding,) = found(allow, deny)
    assert finding == (
        "rule a-lookups: allows before rule b-secrets can deny, because both have priority 100 and its id comes "
        "first; raise the priority of b-secrets"
    )
    limited = rule("a-lookups", "allow", tool_name_pattern="db_*", limit={"count": 1, "per": 60})
    assert found(limited, deny) == [finding]
    assert found(allow, deny.model_copy(update={"priority": 200})) == []
    assert found(allow.model_copy(update={"priority": 200}), deny) == []


def test_find_findings_allow_by_claim() -> None:
    (finding,) = found(rule("a", "allow", claimed_equals={"env": "test"}))
    assert finding.startswith("rule a: allows by claims of the agent")


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"reviewers": ["ana"]}, ["there is no reviewer 'ana' (did you mean 'anna'?)", "1 must approve"]),
        ({"reviewers": ["anna", "carla"], "quorum": {"approve": 2}}, ["'carla' is deactivated", "2 must approve"]),
        ({"reviewers": ["anna"], "escalate": [{"after_s": 9, "reviewers": ["dora"]}]}, ["there is no reviewer 'dora'"]),
        ({"quorum": {"approve": 3}}, ["3 must approve, but only 2 of the reviewers can decide; add reviewers"]),
        ({"quorum": {"deny": 3}}, ["3 must deny"]),
        ({"reviewers": ["anna", "ben"], "quorum": {"approve": 2}}, []),
        ({}, []),
    ],
)
def test_find_findings_reviewers_who_cannot_decide(terms: dict[str, Any], words: list[str]) -> None:
    finding = found(rule("a", "request_approval", terms=terms), known=Known(PEOPLE))
    assert [one for one, word in zip(finding, words, strict=True) if word not in one or "rule a: " not in one] == []
    default = find_findings(policy(terms=RuleTerms.model_validate(terms)), Known(PEOPLE))
    assert len(default) == len(words)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"reviewers": ["group:payments"]}, []),
        ({"reviewers": ["group:payments"], "quorum": {"approve": 2}}, []),
        ({"reviewers": ["group:payments"], "quorum": {"approve": 3}}, ["3 must approve, but only 2 of the reviewers"]),
        ({"reviewers": ["group:mixed", "anna"], "quorum": {"approve": 2}}, ["2 must approve, but only 1"]),
        (
            {"reviewers": ["group:payment"]},
            ["there is no group 'payment' (did you mean 'payments'?); create it", "1 must approve"],
        ),
        ({"reviewers": ["group:"]}, ["there is no group ''", "1 must approve"]),
        (
            {"reviewers": ["group:payments", "group:mixed"], "quorum": {"each_of": ["group:payments", "group:mixed"]}},
            [],
        ),
        (
            {"reviewers": ["group:payments", "group:mixed", "anna"], "quorum": {"each_of": ["anna", "group:mixed"]}},
            ["too few different people are in the 2 groups of quorum.each_of"],
        ),
        ({"reviewers": ["group:gone"]}, ["the group 'gone' has no active member", "1 must approve"]),
        ({"reviewers": ["payments"]}, ["did you mean 'group:payments'?", "1 must approve"]),
        (
            {"reviewers": ["anna"], "escalate": [{"after_s": 9, "reviewers": ["group:ops"]}]},
            ["there is no group 'ops'"],
        ),
    ],
)
def test_find_findings_groups_that_cannot_decide(terms: dict[str, Any], words: list[str]) -> None:
    groups = {"payments": ("anna", "ben"), "mixed": ("anna", "carla"), "gone": ("carla",)}
    told = found(rule("a", "request_approval", terms=terms), known=Known(PEOPLE, groups=groups))
    assert [one for one, word in zip(told, words, strict=True) if word not in one or "rule a: " not in one] == []


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"when": "args.amuont > 5"}, "when: refund has no argument 'amuont' (did you mean 'amount'?); correct it"),
        ({"when": 'args["totals"] == 1'}, "refund has no argument 'totals'"),
        ({"when": "args.amount == '5'"}, 'args.amount == "5" can never work, because amount is number'),
        ({"when": "args.order > 5"}, "args.order > 5 can never work, because order is string"),
        ({"when": "5 == args.order"}, "args.order == 5 can never work"),
        ({"when": "args.note != 5.5"}, "because note is null or string"),
        ({"tool_name": None, "tool_names": ["refund"], "when": "args.sum > 1"}, "has no argument 'sum'"),
        ({"when": "host(args.link) == 'x'"}, "when: refund has no argument 'link'"),
        ({"when": "has_card(args.nota)"}, "has no argument 'nota' (did you mean 'note'?)"),
        (
            {"when": "'rm' in shell(args.amount).programs"},
            "shell(args.amount) can never work, because amount is number",
        ),
        ({"agent": None, "agents": ["support", "x"], "when": "args.sum > 1"}, "has no argument 'sum'"),
        (
            {"action": "request_user_input", "request_payload": {"target_arg": "code"}},
            "ask.target_arg: refund has no argument 'code'",
        ),
    ],
)
def test_find_findings_unknown_arguments(parts: dict[str, Any], words: str) -> None:
    (finding,) = found(rule("a", parts.pop("action", "deny"), **{"tool_name": "refund", **parts}), known=TOOLS)
    assert words in finding


@pytest.mark.parametrize(
    "parts",
    [
        {"when": "args.amount > 5 && args.order.startsWith('A') && has(args.note)"},
        {"when": "double(args.amount) > 5.0 && args.order + 'x' == 'Ax' && size(args) > 3"},
        {"when": "tool == 'args.amuont > 5'"},
        {"tool_name": "anything", "when": "args.amuont > 5"},
        {"tool_name": "unknown", "when": "args.amuont > 5"},
        {"tool_name": "refund", "agent": "sales", "when": "args.amuont > 5"},
    ],
)
def test_find_findings_accepts_possible_arguments(parts: dict[str, Any]) -> None:
    assert found(rule("a", **{"tool_name": "refund", **parts}), known=TOOLS) == []


def test_demo_rules_have_no_findings() -> None:
    for file in sorted(CHECKOUT.glob("*/policy.yaml")):
        assert find_findings(load_rulebook(file), NOTHING) == [], file


def test_findings_of_a_thousand_rules_come_at_once() -> None:
    rules = tuple(rule(f"r{number:04}", tool_name_pattern=f"t{number}_*") for number in range(1000))
    assert find_findings(Policy(rules=rules, default="deny"), TOOLS) == []  # type: ignore[arg-type]


def test_comparisons_are_read_from_the_text_of_a_condition() -> None:
    text = "args.a > 'x' && 3 != args.b && args.c.d == 1 && args.e + 1 == 2 && args['f'] == \"g > 'h'\""
    assert find_comparisons(text) == [
        Comparison("a", ">", "x", True),
        Comparison("b", "!=", "3", False),
        Comparison("f", "==", "g > 'h'", True),
    ]
    assert find_args(f"{text} && context.args.z == 1") == ["a", "b", "c", "e", "f"]
    assert find_text_order("args.when > '2026-01-01' && args.id == '5'") is None
    assert find_text_order("args.x >= '-2.5'") == "-2.5"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"valid_until": "2026-11-30"}, "no longer applies, because its valid_until 2026-11-30 has passed; remove"),
        ({"review_by": "2026-11-30"}, "its review_by 2026-11-30 has passed; review it, then set a later date"),
        ({"review_by": "2026-11-30", "owner": "Dora"}, "has passed; review it with its owner Dora, then set"),
    ],
)
def test_find_findings_dates_that_have_passed(parts: dict[str, Any], words: str) -> None:
    end_ms = find_end_ms("2026-11-30")
    assert found(rule("a", **parts), known=Known(now_ms=end_ms - 1)) == []
    (finding,) = found(rule("a", **parts), known=Known(now_ms=end_ms))
    assert finding.startswith("rule a: ")
    assert words in finding
    assert found(rule("a", enabled=False, **parts), known=Known(now_ms=end_ms)) == []


@pytest.mark.parametrize("search", ["matches('rm')", "startsWith('git')", "lowerAscii().contains('rm')"])
def test_find_findings_searched_text_of_a_command_that_is_read(search: str) -> None:
    function = search.split("(")[-2].rsplit(".", maxsplit=1)[-1]
    searched = rule("b", "allow", tool_name="run_shell", when=f"!args.command.{search}")
    read = rule("a", "deny", tool_name="run_shell", when='"rm" in shell(args.command).programs')
    (finding,) = found(searched, read)
    assert f"rule b: when: args.command.{function}(…) searches a command" in finding
    assert "compare shell(args.command).calls" in finding


def test_find_findings_searched_text_of_another_argument() -> None:
    read = "'rm' in shell(args.command).programs && (args.note.contains('x') || context.command.contains('y'))"
    assert found(rule("a", "deny", tool_name="run_shell", when=read)) == []
    assert found(rule("a", "deny", tool_name="run_shell", when="args.command.matches('rm')")) == []


def test_stages_need_a_different_person_for_each_approval() -> None:
    stages = [{"reviewers": ["anna"]}, {"reviewers": ["group:finance"]}]
    staged = rule("a", action="request_approval", terms={"stages": stages})
    few = Known(reviewers=PEOPLE, groups={"finance": ("anna", "carla")})
    assert found(staged, known=few) == [
        "rule a: its stages need 2 different people, for nobody approves in two; add some"
    ]
    assert found(staged, known=Known(reviewers=PEOPLE, groups={"finance": ("anna", "ben")})) == []
