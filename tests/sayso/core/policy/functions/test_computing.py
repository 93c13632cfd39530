"""What Sayso computes for a rule is recorded with the judgement; what it cannot compute is asked about."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.decisions import build_item, describe_judged
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.functions.shorthands import MOST_SHOWN, SHORTHANDS, shorten
from sayso.core.policy.rules import Action, PolicyRule, RuleCondition
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.features.whatif.explaining import explain

DEFINITION = ToolDefinition(name="run", parameters={"type": "object"})


def make(when: str, action: str = "request_approval", rule_id: str = "a", **more: Any) -> PolicyRule:
    return PolicyRule(rule_id=rule_id, action=Action(action), condition=RuleCondition(when=when), **more)


def policy(*rules: PolicyRule) -> Policy:
    return Policy(rules=rules, default=Action.ALLOW)


def event(**args: Any) -> PolicyEvent:
    return PolicyEvent(run_id="run_1", agent="a", tool_name="run", tool_args=args)


def test_what_the_deciding_rule_read_is_recorded() -> None:
    rules = policy(
        make('"ls" in shell(args.command).programs', rule_id="a-other"),
        make('"rm" in shell(args.command).programs && shell(args.command).pipes == 0', rule_id="b-deciding"),
        make("has_card(args.command)", rule_id="c-later"),
    )
    decision = rules.judge(event(command="sudo rm x"))
    assert decision.policy_id == "b-deciding"
    assert decision.computed == {"shell(args.command).programs": ["sudo", "rm"], "shell(args.command).pipes": 0}
    assert rules.judge(event(command="date")).computed == {}


def test_what_a_doubted_rule_read_is_recorded() -> None:
    rules = policy(make("has_card(args.note) && args.amount > 5", rule_id="a", action="deny"))
    decision = rules.judge(event(note="4111 1111 1111 1111", amount="x"))
    assert (decision.action, decision.in_doubt) == (Action.REQUEST_APPROVAL, Action.DENY)
    assert decision.computed == {"has_card(args.note)": True}


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"command": "$X"}, "rule a: shell(args.command): the name of a program is computed by the shell"),
        ({"command": 5}, "rule a: shell(args.command): it must be a text, not int"),
        ({}, "rule a: shell(args.command): there is no args.command"),
    ],
)
def test_what_cannot_be_computed_is_asked_about(args: JsonObject, error: str) -> None:
    for action in ("allow", "deny"):
        decision = policy(make('"rm" in shell(args.command).programs', action)).judge(event(**args))
        assert (decision.action, decision.error, decision.computed) == (Action.REQUEST_APPROVAL, error, {})


def test_values_that_are_not_needed_raise_no_doubt() -> None:
    rules = policy(make('has(args.command) && "rm" in shell(args.command).programs', "deny"))
    assert rules.judge(event()).action is Action.ALLOW
    assert policy(make('args.a == 1 || "rm" in shell(args.b).programs', "deny")).judge(event(a=1)).action is Action.DENY


def test_leaves_are_not_recorded() -> None:
    decision = policy(make("leaves(args).exists(x, x.lowerAscii().contains('secret'))")).judge(event(a=["My SECRET"]))
    assert (decision.policy_id, decision.computed) == ("a", {})


def test_computed_values_go_into_item_and_trail() -> None:
    rules = policy(make('"rm" in shell(args.command).programs'))
    call = ToolCall(call_id="c", index=0, name="run", args={"command": "rm x"})
    decision = rules.judge(event(**call.args))
    expected = {"shell(args.command).programs": ["rm"]}
    assert build_item(DEFINITION, call, decision).computed == expected
    assert describe_judged(call, decision, DEFINITION).data["computed"] == expected
    plain = policy().judge(event(**call.args))
    assert "computed" not in describe_judged(call, plain, DEFINITION).data
    assert build_item(DEFINITION, call, plain).computed is None


def test_texts_from_secret_arguments_are_masked() -> None:
    terms = RuleTerms(secrets=("login.command",))
    rule = make(
        '"rm" in shell(args.login.command).programs && shell(args.login.command).pipes == 0 && !has_mail(args)',
        terms=terms,
    )
    call = ToolCall(call_id="c", index=0, name="run", args={"login": {"command": "rm x"}, "other": "y"})
    decision = policy(rule).judge(event(**call.args))
    masked = {
        "shell(args.login.command).programs": ["[secret]"],
        "shell(args.login.command).pipes": 0,
        "has_mail(args)": False,
    }
    assert build_item(DEFINITION, call, decision).computed == masked
    assert describe_judged(call, decision, DEFINITION).data["computed"] == masked


def test_explain_shows_what_each_rule_computed() -> None:
    rules = policy(make("host(args.url) == 'a.example'"), make("host(args.url) == 'b.example'", rule_id="b"))
    found = explain(rules, event(url="https://b.example/x"))
    assert [trial.saw["host(args.url)"] for trial in found.trials] == ["b.example", "b.example"]


def test_shorten_cuts_lists_and_texts() -> None:
    assert shorten(["a"] * 30) == [*["a"] * MOST_SHOWN, "… 10 more"]
    assert shorten({"a": "x" * 500}) == {"a": "x" * 200 + "…"}


ALL = " || ".join(
    f"{name}{one.usage}{f'.{field}' if field else ''} == {name}{one.usage}{f'.{field}' if field else ''} && false"
    for name, one in SHORTHANDS.items()
    for field in (one.fields or [""])
)
_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=5), one, max_size=4),
    max_leaves=10,
)
_NAMES = ["command", "query", "url", "file", "to", "text"]


@settings(max_examples=200, deadline=None)
@given(args=st.dictionaries(st.sampled_from(_NAMES), _ANYTHING))
def test_no_argument_makes_judge_raise(args: dict[str, Any]) -> None:
    rules = policy(*(make(part, "deny", rule_id=f"r{number}") for number, part in enumerate(ALL.split(" || "))))
    decision = rules.judge(event(**args))
    assert decision.action in (Action.ALLOW, Action.REQUEST_APPROVAL)
