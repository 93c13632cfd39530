"""What a rule does, and why it does not decide, in words."""

from typing import Any

import pytest

from sayso.core.policy.rules import Action
from sayso.core.sentences.rules import (
    describe_condition,
    describe_decision,
    describe_default,
    describe_rule,
    runs_by_itself,
)
from sayso.features.whatif.explaining import explain
from sayso.features.whatif.text import describe_trial
from tests.sayso.rule_builders import event, policy, rule

ASK = "request_approval"


@pytest.mark.parametrize(
    ("action", "parts", "words"),
    [
        ("allow", {}, "All calls run without asking anyone."),
        ("deny", {"agent": "bot"}, "Calls of any tool by bot are denied."),
        ("deny", {"agents": ("bot", "b-*")}, "Calls of any tool by bot or b-* are denied."),
        ("deny", {"tool_names": tuple("abcdefghij")}, "Calls of a, b, c, d, e, f, g, h or 2 others are denied."),
        ("deny", {"subjects": ("llm_call",), "metadata_equals": {"model": "l"}}, "Model calls, if its model is l are"),
        ("allow", {"subjects": ("any",)}, "Calls and model calls run without asking anyone."),
        ("allow", {"tool_names": ("a", "b_*")}, "Calls of a or b_* run without asking anyone."),
        ("deny", {"tool_name": "x", "subagent_name": "h"}, "Calls of x through its sub-agent h are denied."),
        ("deny", {"context_equals": {"env": "prod"}}, "if env is prod in the facts about the run"),
        ("deny", {"claimed_has_keys": ("plan",)}, "if the agent claims that plan is given"),
        (
            ASK,
            {"tool_name": "refund", "when": "args.amount > 100", "terms": {"timeout_s": 7200}},
            "Calls of refund with amount over 100 wait 2 h for any reviewer; then they are denied.",
        ),
        (ASK, {"tool_name": "x"}, "Calls of x wait 5 min (unless the agent sets another time) for any reviewer"),
        (
            ASK,
            {"terms": {"timeout_s": 60, "reviewers": ["anna", "group:pay"], "quorum": {"approve": 2}}},
            "wait 1 min for 2 of anna or the group pay; then",
        ),
        (
            ASK,
            {"terms": {"reviewers": ["anna", "group:pay"], "quorum": {"approve": 2, "each_of": ["group:pay"]}}},
            "for 2 of anna or the group pay, among them one of pay; then",
        ),
        (ASK, {"terms": {"timeout_s": 60, "quorum": {"approve": 2}}}, "for any 2 reviewers"),
        (ASK, {"terms": {"timeout_s": 0}}, "wait for nobody: they are denied at once."),
        (ASK, {"terms": {"fallback": {"action": "fail"}}}, "then the run fails."),
        (
            ASK,
            {"terms": {"unattended_approval": True, "fallback": {"action": "approve"}}},
            "then they run by themselves.",
        ),
        (
            ASK,
            {"terms": {"escalate": [{"after_s": 9, "reviewers": ["ben"]}], "fallback": {"action": "escalate"}}},
            "then ben is asked too.",
        ),
        (
            "request_user_input",
            {
                "request_payload": {"target_arg": "region"},
                "terms": {"timeout_s": 60, "fallback": {"action": "value", "value": "eu"}},
            },
            "wait 1 min for a value of region from any reviewer; then the value “eu” is used.",
        ),
    ],
)
def test_describe_rule_says_what_it_does(action: str, parts: dict[str, Any], words: str) -> None:
    assert words in describe_rule(rule("one", action, **parts))


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("args.amount >= 5", "with amount at least 5"),
        ('args.a == "x y" && args.b != 2', "with a equal to x y and b other than 2"),
        ("args.amount > 1 || args.b < 2", "where args.amount > 1 || args.b < 2"),
        ("args.a > 1 &&\n  has(args.b)", "where args.a > 1 && has(args.b)"),
        ('args.a == "x && args.b > 1"', 'where args.a == "x && args.b > 1"'),
    ],
)
def test_describe_condition_quotes_what_is_not_plain(when: str, words: str) -> None:
    assert describe_condition(when) == words


def test_runs_by_itself_needs_an_enabled_rule_that_asks() -> None:
    terms = {"unattended_approval": True, "fallback": {"action": "approve"}}
    assert runs_by_itself(rule("one", ASK, terms=terms))
    assert not runs_by_itself(rule("one", ASK, terms=terms, enabled=False))
    assert not runs_by_itself(rule("one", ASK))
    assert not runs_by_itself(rule("one", "allow", terms=terms))


def test_describe_default_and_decision_cover_each_action() -> None:
    rules = {action: policy(default=action) for action in (Action.ALLOW, Action.DENY, Action.REQUEST_APPROVAL)}
    assert [describe_default(one).split(" that no rule matches ")[1][:8] for one in rules.values()] == [
        "run with",
        "are deni",
        "wait 5 m",
    ]
    assert [describe_decision(one.judge(event())) for one in rules.values()][:2] == [
        "It would run without asking anyone.",
        "It would be denied.",
    ]
    value = rule("v", "request_user_input", request_payload={"target_arg": "code"}, terms={"timeout_s": 5})
    expected = "It would wait 5 s for a value of code from any reviewer; then it is denied."
    assert describe_decision(policy(value).judge(event())) == expected


def test_describe_trial_says_what_the_condition_saw() -> None:
    rules = policy(
        rule("a", "allow", priority=900, tool_name="refund", when="args.amount < 5"),
        rule("b", "deny", priority=800, when="args.amount > 5"),
        rule("c", "allow", priority=700, when="args.note.size() > 0"),
        rule("d", "deny", priority=600, tool_names=("x", "y")),
        rule("e", "deny", priority=500, agent="billing"),
        rule("f", "deny", priority=400),
        rule("g", "deny", priority=300, enabled=False),
        rule("h", "deny", priority=200, context_equals={"env": "prod"}),
        rule("i", "deny", priority=100, subagent_name="helper"),
        rule("j", "deny", priority=90, subjects=("llm_call",)),
    )
    call = event(amount=7, context={"env": "t" * 300}, subagent_name="")
    words = [describe_trial(one) for one in explain(rules, call).trials]
    assert words[0] == "Its condition is false. Here amount is 7."
    assert words[1] == "Decides. Here amount is 7."
    assert words[2].startswith("Cannot be evaluated, so a reviewer decides: ")
    assert words[3:7] == [
        "It is for x or y.",
        "It is for the agent billing.",
        "Matches too, but another rule decides.",
        "Disabled.",
    ]
    assert words[7] == f"It needs other facts about the run. Here env is {'t' * 119}…."
    assert words[8:] == ["It is for the sub-agent helper.", "It does not cover tool calls."]
