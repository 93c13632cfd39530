"""Terms that name groups, compared and combined."""

import pytest
from pydantic import ValidationError

from sayso.core.policy.files.reading import RulebookError, parse_rulebook
from sayso.core.policy.rules import check_quorum
from sayso.core.policy.strictness import is_stricter, state_terms, strictest_terms
from sayso.core.records.items import freeze_terms
from sayso.core.records.terms import RuleTerms


def test_rulebook_accepts_a_quorum_of_a_group() -> None:
    text = b"version: 1\ndefault: allow\nrules: []\nterms: {reviewers: ['group:ops'], quorum: {approve: 3}}\n"
    assert parse_rulebook(text, file="policy.yaml").terms.reviewers == ("group:ops",)


def test_strictest_terms_with_a_common_group() -> None:
    both = RuleTerms(reviewers=("group:ops", "anna"))
    two = RuleTerms.model_validate({"reviewers": ["group:ops", "ben"], "quorum": {"approve": 2}})
    assert strictest_terms([both, two]).reviewers == ("group:ops",)


def test_is_stricter_with_a_group_instead_of_a_person() -> None:
    frozen = freeze_terms(RuleTerms(reviewers=("anna",)), rule_id="r", rule_version="1", now_ms=0)
    assert is_stricter(RuleTerms(reviewers=("group:ops",)), frozen)
    assert not is_stricter(RuleTerms(reviewers=("anna", "group:ops")), frozen)


def test_strictest_terms_need_a_number_if_any_do() -> None:
    assert strictest_terms([RuleTerms(), RuleTerms(match_number=True)]).match_number


def test_strictest_terms_notify_the_requester_if_any_do() -> None:
    assert strictest_terms([RuleTerms(), RuleTerms(notify_requester=True)]).notify_requester


def test_is_stricter_with_a_number() -> None:
    frozen = freeze_terms(RuleTerms(), rule_id="r", rule_version="1", now_ms=0)
    needed = freeze_terms(RuleTerms(match_number=True), rule_id="r", rule_version="1", now_ms=0)
    assert is_stricter(RuleTerms(match_number=True), frozen)
    assert not is_stricter(RuleTerms(match_number=True), needed)
    assert state_terms(needed).match_number


def test_fallback_that_approves_excludes_a_number() -> None:
    with pytest.raises(ValidationError, match="types no number"):
        RuleTerms.model_validate({"match_number": True, "unattended_approval": True, "fallback": {"action": "approve"}})


EACH = {"each_of": ["group:finance", "group:legal"]}
NAMED = ["group:finance", "group:legal"]


def state(reviewers: list[str], **quorum: object) -> RuleTerms:
    return RuleTerms.model_validate({"reviewers": reviewers, "quorum": quorum})


@pytest.mark.parametrize(
    ("one", "other", "reviewers", "approve", "each_of"),
    [
        (state(NAMED, **EACH), state([*NAMED, "anna"]), NAMED, 2, NAMED),
        (state(NAMED, **EACH), state(["anna"]), NAMED, 2, NAMED),
        (state(["anna", "ben"], each_of=["anna"]), state(["ben"], approve=1), ["anna", "ben"], 1, ["anna"]),
        (state(NAMED, **EACH), state(["group:ops"], each_of=["group:ops"]), [*NAMED, "group:ops"], 3, None),
        (state(["anna"], each_of=["anna"]), state(["ben", "carl", "dora"], approve=3), None, 3, ["anna"]),
    ],
)
def test_strictest_terms_need_one_of_each_that_any_names(
    one: RuleTerms, other: RuleTerms, reviewers: list[str] | None, approve: int, each_of: list[str] | None
) -> None:
    for pair in ([one, other], [other, one]):
        found = strictest_terms(pair)
        check_quorum(found)
        assert {*found.reviewers} == {*(reviewers or ["anna", "ben", "carl", "dora"])}
        assert found.quorum.approve == approve
        assert {*found.quorum.each_of} == {*(each_of or found.reviewers)}


def test_is_stricter_with_one_more_of_each() -> None:
    plain = freeze_terms(state(NAMED, approve=2), rule_id="r", rule_version="1", now_ms=0)
    each = freeze_terms(state(NAMED, **EACH), rule_id="r", rule_version="1", now_ms=0)
    assert is_stricter(state(NAMED, **EACH), plain)
    assert not is_stricter(state(NAMED, approve=2), each)
    assert state_terms(each).quorum == each.quorum


def test_rulebook_refuses_one_of_a_group_that_does_not_review() -> None:
    text = b"version: 1\ndefault: allow\nrules: []\nterms: {reviewers: ['group:ops'], quorum: {each_of: [ops]}}\n"
    with pytest.raises(RulebookError, match=r"quorum\.each_of names ops, who is not among the reviewers"):
        parse_rulebook(text, file="policy.yaml")
