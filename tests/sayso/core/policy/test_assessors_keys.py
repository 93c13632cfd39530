"""Faults of the key `assess` are found when the file is loaded."""

import pytest

from sayso.core.policy.files.reading import RulebookError, parse_rulebook
from sayso.core.policy.rule_keys import Scrutiny
from sayso.core.records.terms import RuleTerms

HEAD = "version: 1\ndefault: deny\nrules:\n"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (
            "{id: a, action: request_approval, assess: {by: fraud, high: {reviewers: [anna]}}, "
            "terms: {reviewers: [anna, ben], quorum: {each_of: [anna, ben]}}}",
            "quorum.each_of names ben, who is not among the reviewers",
        ),
        ("{id: a, action: deny, assess: {by: fraud, high: {}}}", "a denied call needs no assessor"),
        ("{id: a, action: allow, mode: shadow, assess: {by: fraud, high: {}}}", "a shadow rule asks no assessor"),
        ("{id: a, action: allow, subjects: [any], assess: {by: fraud, high: {}}}", "assessors see tool calls only"),
        (
            "{id: a, action: defer, terms: {quorum: {approve: 2}}, assess: {by: fraud, high: {quorum: 1}}}",
            "the quorum of high is 1, below the 2 of the rule; raise it",
        ),
        (
            "{id: a, action: defer, terms: {reviewers: [anna]}, assess: {by: fraud, high: {reviewers: [ben]}}}",
            "the rule's reviewers do not name ben",
        ),
        (
            "{id: a, action: defer, assess: {by: f, medium: {reviewers: [anna]}, high: {reviewers: [ben]}}}",
            "the rule's reviewers do not name ben",
        ),
        (
            "{id: a, action: defer, terms: {reviewers: [anna]}, assess: {by: fraud, medium: {quorum: 2}, high: {}}}",
            "the quorum of medium exceeds its 1 reviewers",
        ),
        ("{id: a, action: defer, assess: {by: fraud}}", "assess.high: is missing"),
        ("{id: a, action: defer, assess: {by: fraud, high: {}, low: {}}}", "there is no key `low` here"),
        ("{id: a, action: defer, assess: {by: Fraud!, high: {}}}", "assess.by"),
        ("{id: a, action: defer, assess: fraud}", "assess: must be a mapping"),
    ],
)
def test_fault_of_an_assessor_is_reported(rule: str, problem: str) -> None:
    with pytest.raises(RulebookError) as found:
        parse_rulebook(f"{HEAD}  - {rule}".encode(), file="policy.yaml")
    assert problem in found.value.message


def test_rules_without_an_assessor_keep_their_version() -> None:
    rule = parse_rulebook(f"{HEAD}  - {{id: a, action: deny}}".encode(), file="policy.yaml").rules[0]
    assert "assess" not in rule.model_dump(mode="json")


def test_scrutiny_keeps_the_names_of_whom_one_each_must_approve() -> None:
    names = ("group:finance", "group:legal")
    terms = RuleTerms.model_validate({"reviewers": names, "quorum": {"each_of": names}})
    found = Scrutiny(quorum=3).add_to(terms)
    assert (found.quorum.approve, found.quorum.each_of) == (3, names)
