"""Questions of an agent: a reviewer answers, unless a rule requires approval."""

from typing import Any

import pytest

from sayso.core.policy.decisions import KEYWORD, build_item, find_question, put_question
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import ExternalCall, evaluate_calls
from sayso.core.policy.rules import Action
from sayso.core.records.items import Answer, ItemDraft, ItemKind
from sayso.core.records.suspensions import RunRef
from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from tests.sayso.rule_builders import event, policy, rule

ASK = ToolDefinition(
    name="ask_user",
    parameters={
        "type": "object",
        "properties": {name: {} for name in ("question", "context", "choices", "answer")},
        KEYWORD: {"question": "question", "context": "context", "choices": "choices", "answer": "answer"},
    },
)


TWO = {"quorum": {"approve": 2}}


def ask(rules: Policy, **args: Any) -> ItemDraft:
    call = ToolCall(call_id="c1", index=0, name="ask_user", args=args)
    return build_item(ASK, call, put_question(ASK, args, rules.judge(event("ask_user", tool_args=args))))


@pytest.mark.parametrize("default", [Action.ALLOW, Action.REQUEST_APPROVAL])
def test_question_takes_precedence_over_the_default(default: Action) -> None:
    asked = ask(policy(default=default), question="Which file?", context="There are two.", choices=["a", "b", "a"])
    assert (asked.kind, asked.target_arg, asked.preset) == (ItemKind.INPUT, "answer", None)
    assert (asked.prompt.title, asked.prompt.body) == ("Which file?", "There are two.")
    assert asked.prompt.reason == "The agent asks this question."
    assert asked.choices == ("a", "b")
    assert asked.response_schema == {"enum": ["a", "b"]}
    assert asked.allowed == (Answer.VALUE, Answer.DENY)


def test_question_without_choices_accepts_any_text() -> None:
    asked = ask(policy(), question="Why?", choices=[])
    assert (asked.choices, asked.response_schema) == (None, {"type": "string", "pattern": r"\S"})


def test_denied_question_is_not_asked() -> None:
    asked = ask(policy(rule("quiet", tool_name="ask_user")), question="Why?")
    assert asked.preset is not None
    assert asked.preset.verdict == "denied"


def test_question_uses_the_texts_of_its_rule() -> None:
    fallback = {"action": "value", "value": "b"}
    payload = {"target_arg": "answer", "title": "Please"}
    own = rule("own", "request_user_input", request_payload=payload, terms={"fallback": fallback, "timeout_s": 60})
    asked = ask(policy(own), question="Which?", choices=["a", "b"])
    assert (asked.prompt.title, asked.choices, asked.terms.fallback.value) == ("Please", ("a", "b"), "b")


def test_question_keeps_a_rule_for_another_argument() -> None:
    own = rule("own", "request_user_input", request_payload={"target_arg": "context"})
    assert ask(policy(own), question="Which?").target_arg == "context"


def test_question_replaces_fallback_approve_by_deny() -> None:
    terms = RuleTerms(fallback=Fallback(action=FallbackAction.APPROVE), unattended_approval=True)
    asked = ask(policy(default=Action.REQUEST_APPROVAL, terms=terms), question="Which?")
    assert asked.terms.fallback.action is FallbackAction.DENY


def test_long_question_is_repeated_in_the_body() -> None:
    asked = ask(policy(), question="why " * 100, context="Because.")
    assert asked.prompt.title is not None
    assert len(asked.prompt.title) == 200
    assert asked.prompt.body == f"{('why ' * 100).strip()}\n\nBecause."


@pytest.mark.parametrize("unsure", [{}, {"when": "args.amount > 100"}])
def test_rule_may_require_approval_of_a_question(unsure: Any) -> None:
    wants = rule("strict", "request_approval", request_payload={"title": "Two people"}, terms=TWO, **unsure)
    asked = ask(policy(wants), question="Which?", choices=["a", "b"])
    assert (asked.kind, asked.target_arg, asked.prompt.title) == (ItemKind.APPROVAL, None, "Two people")
    assert (asked.choices, asked.terms.quorum.approve) == (None, 2)


def test_evaluate_calls_asks_known_questions() -> None:
    call = ToolCall(call_id="c1", index=0, name="ask_user", args={"question": "Which?"})
    run = RunRef(id="run_1", agent="bot", owner="bot", thread_id="t")
    (asked,), events = evaluate_calls(policy(), run, [ExternalCall(call, ASK, known=True)])
    assert asked.kind is ItemKind.INPUT
    assert events[-1].data["action"] == "request_user_input"


@pytest.mark.parametrize("keyword", [None, "ask", {"question": "q"}, {"question": "q", "answer": "a", "more": 1}])
def test_find_question_with_unreadable_keyword(keyword: Any) -> None:
    assert find_question(ToolDefinition(name="t", parameters={"type": "object", KEYWORD: keyword})) is None
