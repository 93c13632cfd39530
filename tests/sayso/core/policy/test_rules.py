"""Rules: valid and invalid combinations."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.rules import Action, PolicyRule, RuleCondition, same_json


def rule(action: str = "request_approval", **parts: Any) -> PolicyRule:
    return PolicyRule.model_validate({"rule_id": "r", "action": action} | parts)


def test_defer_is_read_as_request_approval() -> None:
    assert rule("defer").action is Action.REQUEST_APPROVAL
    assert Action("defer") is Action.REQUEST_APPROVAL
    assert "defer" not in {action.value for action in Action}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"action": "perhaps"}, "'allow'"),
        ({"rule_id": "two words"}, "pattern"),
        ({"subjects": []}, "at least 1"),
        ({"surprise": 1}, "Extra inputs"),
        ({"condition": {"tool_name": "refund_*"}}, "tool_name_pattern"),
        ({"condition": {"when": "tol == 1"}}, "undeclared reference to 'tol'"),
        ({"condition": {"event_type": "before_tool"}}, "should be 'tool_before_execute' or 'llm_before_execute'"),
        ({"action": "request_user_input"}, "target_arg"),
        ({"action": "request_user_input", "request_payload": {"prompt": "code?"}}, "target_arg"),
        (
            {
                "action": "request_user_input",
                "request_payload": {"target_arg": "a", "choices": [1], "response_schema": {"type": "integer"}},
            },
            "remove one of them",
        ),
        ({"request_payload": {"target_arg": "code"}}, "needs the action request_user_input"),
        ({"request_payload": {"response_schema": {"type": "string"}}}, "needs the action request_user_input"),
        ({"request_payload": {"choices": [1, 2]}}, "needs the action request_user_input"),
        ({"request_payload": {"allow_edits": True}}, "Extra inputs"),
        ({"action": "deny", "request_payload": {"prompt": "?"}}, "asks nobody"),
        ({"terms": {"fallback": {"action": "approve"}}}, "unattended_approval"),
        ({"terms": {"fallback": {"action": "value", "value": 1}}}, "request_user_input"),
        ({"terms": {"fallback": {"action": "escalate"}}}, "escalate:"),
        ({"terms": {"remind_after_s": [0]}}, "greater than or equal to 1"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        rule(**parts)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"fallback": {"action": "approve"}, "unattended_approval": True}, "has no value"),
        ({"fallback": {"action": "value"}}, "add it as value"),
        ({"fallback": {"action": "value", "value": 3}}, "none of the choices"),
        ({"fallback": {"action": "value", "value": True}}, "none of the choices"),
    ],
)
def test_the_fallback_of_a_value_must_be_a_possible_answer(terms: dict[str, Any], words: str) -> None:
    payload = {"target_arg": "n", "choices": [1, 2]}
    with pytest.raises(ValidationError, match=words):
        rule("request_user_input", request_payload=payload, terms=terms)
    accepted = rule("request_user_input", request_payload=payload, terms={"fallback": {"action": "value", "value": 2}})
    assert accepted.terms.fallback.value == 2


def test_fault_has_its_place() -> None:
    with pytest.raises(ValidationError) as caught:
        rule(condition={"when": "1 +"}, terms={"fallback": {"action": "value", "value": 1}})
    assert {fault["loc"] for fault in caught.value.errors()} == {("condition", "when"), ("terms",)}


def test_values_are_compared_as_json_does() -> None:
    assert same_json({"a": [1, None]}, {"a": [1.0, None]})
    assert not same_json(1, True)
    assert not same_json([0], [False])
    assert not same_json({"a": 1}, {"a": 1, "b": 2})
    assert not same_json([1], [1, 2])
    assert not same_json("1", 1)


def test_empty_condition_matches_everything() -> None:
    assert RuleCondition() == RuleCondition.model_validate({})
