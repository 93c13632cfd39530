"""Terms that name groups, compared and combined."""

from sayso.policy.files import parse_rulebook
from sayso.policy.strictness import is_stricter, strictest_terms
from sayso.records.terms import RuleTerms, freeze_terms


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
