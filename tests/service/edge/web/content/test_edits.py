import pytest

from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.external import FinalJudgement
from sayso.core.policy.rules import Action
from service.edge.web.content.details import compare_args
from service.edge.web.content.edits import find_step, make_review
from tests.service.edge.web.stories import make_ask

ROWS = compare_args({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4})


def judged(action: Action, policy_id: str | None = None) -> FinalJudgement:
    return FinalJudgement(PolicyDecision(action=action, reason="", policy_id=policy_id, rule_version="1"), None)


@pytest.mark.parametrize(
    ("judgement", "opinion"),
    [
        (judged(Action.REQUEST_APPROVAL, "refunds"), "Still asks: rule refunds."),
        (judged(Action.ALLOW), "Allowed: the default."),
        (FinalJudgement(None, None), "The rules do not evaluate this call."),
    ],
)
def test_make_review_says_what_the_rules_say(judgement: FinalJudgement, opinion: str) -> None:
    review = make_review(ROWS, judgement)
    assert (review.opinion, review.denied, review.action) == (opinion, False, "Approve with 3 changes")
    assert [row.path for row in review.changes] == ["b", "c", "d"]
    assert [row.path for row in review.same] == ["a"]


def test_make_review_of_a_renewed_item_asks_again() -> None:
    review = make_review(ROWS[:2], judged(Action.REQUEST_APPROVAL, "large")._replace(renewed=make_ask()))
    assert review.opinion.startswith("Must be asked again: rule large applies")
    assert review.action == "Ask again with 1 change"


def test_make_review_of_a_denied_edit_cannot_be_sent() -> None:
    review = make_review(ROWS, None, "Too much.")
    assert (review.opinion, review.denied) == ("Would be denied: Too much.", True)


@pytest.mark.parametrize(
    ("answer", "step", "found"), [("edit", "review", "review"), ("deny", "review", ""), ("edit", "x", "")]
)
def test_find_step_is_of_an_edit_only(answer: str, step: str, found: str) -> None:
    assert find_step({"answer": answer, "step": step}) == found
