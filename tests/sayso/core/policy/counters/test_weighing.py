"""An assessor adds scrutiny by the words of its rule: it never lowers anything and never decides."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.counters.assessing import name_assessment
from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.policy.rules import ASKING, Action
from sayso.core.policy.strictness import STRICTNESS
from sayso.core.records.judgements import Assessment, Level
from sayso.core.records.terms import FallbackAction

RULES = """
version: 1
default: deny
rules:
  - id: hard
    priority: 300
    tool: refund
    when: args.amount > 9000
    action: deny
  - id: large
    priority: 200
    tool: refund
    when: args.amount > 100
    action: request_approval
    terms:
      reviewers: [anna, ben, carla]
      unattended_approval: true
      fallback: {action: approve}
    assess:
      by: fraud
      medium: {reviewers: [anna, ben]}
      high: {quorum: 2, match_number: true, reason: Look at the account.}
  - id: small
    tool: refund
    action: allow
    assess: {by: fraud, high: {}}
  - {id: free, tool: look, action: allow}
"""
POLICY = parse_rulebook(RULES.encode(), file="policy.yaml")
PLAIN = POLICY.model_copy(update={"rules": tuple(rule.model_copy(update={"assess": None}) for rule in POLICY.rules)})
LEVELS = st.sampled_from([*Level])


def call(amount: int = 500, tool: str = "refund", said: Level | None = None, **parts: Any) -> PolicyEvent:
    event = PolicyEvent(run_id="run_1", agent="bot", tool_name=tool, tool_args={"amount": amount}, subagent_name="")
    if said is None:
        return event
    key = name_assessment("fraud", event)
    assessment = Assessment(key=key, assessor="fraud", level=said, **parts)
    return event.model_copy(update={"readings": {key: Reading(assessment=assessment)}})


def test_low_changes_nothing() -> None:
    judged = POLICY.judge(call(said=Level.LOW))
    assert (judged.action, judged.policy_id, judged.terms) == (Action.REQUEST_APPROVAL, "large", POLICY.rules[1].terms)
    assert judged.assessment is not None
    assert not judged.scrutinized


def test_medium_adds_its_own_words_only() -> None:
    terms = POLICY.judge(call(said=Level.MEDIUM)).terms
    assert (terms.reviewers, terms.quorum.approve, terms.match_number) == (("anna", "ben"), 1, False)


def test_high_adds_what_medium_does_and_approves_nothing_by_itself() -> None:
    judged = POLICY.judge(call(said=Level.HIGH))
    terms = judged.terms
    assert (terms.reviewers, terms.quorum.approve, terms.match_number) == (("anna", "ben"), 2, True)
    assert terms.fallback.action is FallbackAction.DENY
    assert judged.reason.endswith("The assessor fraud rates this call high. Look at the account.")


def test_allowed_call_is_asked_at_a_level_that_its_rule_names() -> None:
    actions = [POLICY.judge(call(50, said=level)).action for level in Level]
    assert actions == [Action.ALLOW, Action.ALLOW, Action.REQUEST_APPROVAL]


def test_unknown_assessment_is_asked_under_the_strictest_terms() -> None:
    judged = POLICY.judge(call())
    assert (judged.action, judged.policy_id) == (Action.REQUEST_APPROVAL, None)
    assert "what fraud says about this call is not known here" in (judged.error or "")
    assert (judged.terms.quorum.approve, judged.terms.match_number) == (2, True)
    assert POLICY.judge(call(50)).action is Action.REQUEST_APPROVAL


@given(
    amount=st.sampled_from([50, 500, 9500]),
    level=LEVELS,
    score=st.none() | st.floats(0, 1),
    reason=st.text(max_size=50),
    fault=st.text(max_size=20),
)
def test_no_answer_lowers_anything(amount: int, level: Level, score: float | None, reason: str, fault: str) -> None:
    said = POLICY.judge(call(amount, said=level, score=score, reason=reason, fault=fault))
    plain = PLAIN.judge(call(amount))
    assert_stricter(said, plain)
    assert said.policy_id == plain.policy_id


@given(levels=st.lists(LEVELS, min_size=2, max_size=2).map(lambda found: sorted(found, key=[*Level].index)))
def test_higher_level_is_at_least_as_strict(levels: list[Level]) -> None:
    for amount in (50, 500):
        lower, higher = (POLICY.judge(call(amount, said=level)) for level in levels)
        assert_stricter(higher, lower)


def assert_stricter(said: PolicyDecision, plain: PolicyDecision) -> None:
    assert STRICTNESS[said.action] >= STRICTNESS[plain.action]
    assert (said.action is Action.DENY) == (plain.action is Action.DENY), "an assessor never decides"
    if plain.action in ASKING:
        assert said.terms.quorum.approve >= plain.terms.quorum.approve
        assert said.terms.quorum.deny <= plain.terms.quorum.deny
        assert set(said.terms.reviewers) <= set(plain.terms.reviewers)
        assert said.terms.match_number >= plain.terms.match_number
        assert said.terms.no_self_approval >= plain.terms.no_self_approval


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (call(500), 1),
        (call(50), 1),
        (call(9500), 0),
        (call(50, "look"), 0),
        (call(50, "other"), 0),
        (call(500, said=Level.LOW), 0),
    ],
)
def test_assessor_is_asked_only_about_calls_that_its_rule_may_decide(event: PolicyEvent, count: int) -> None:
    assert len([*POLICY.list_wanted(event)]) == count


def test_question_has_the_call_without_secrets() -> None:
    rules = RULES.replace("      unattended", "      secrets: [iban]\n      unattended")
    policy = parse_rulebook(rules.encode(), file="policy.yaml")
    event = call().model_copy(update={"tool_args": {"amount": 500, "iban": "DE02120300000000202051"}})
    (wanted,) = policy.list_wanted(event)
    assert wanted.question is not None
    assert b'"amount":500' in wanted.question.body
    assert b"DE021203" not in wanted.question.body


def test_other_arguments_are_assessed_again() -> None:
    said = call(said=Level.LOW)
    edited = said.model_copy(update={"tool_args": {"amount": 501}})
    assert len([*POLICY.list_wanted(edited)]) == 1
    assert "not known here" in (POLICY.judge(edited).error or "")


def test_ledger_keeps_what_the_event_knows() -> None:
    assert Ledger(POLICY).judge(call(50, said=Level.LOW)).action is Action.ALLOW
