"""Groups among the reviewers of terms."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.terms import group_of, may_reach


def test_group_of_a_reviewer() -> None:
    assert group_of("group:payments") == "payments"
    assert group_of("anna") is None


@pytest.mark.parametrize(
    ("reviewers", "count", "possible"),
    [((), 1, False), (("anna",), 1, True), (("anna",), 2, False), (("group:ops",), 20, True)],
)
def test_may_reach_with_and_without_groups(reviewers: tuple[str, ...], count: int, possible: bool) -> None:
    assert may_reach(reviewers, count) is possible


def test_actor_without_groups_is_stored_without_them() -> None:
    ada = Actor(id="ada", kind=ActorKind.HUMAN)
    assert ada.model_dump(mode="json") == {"id": "ada", "kind": "human", "channel": "api"}
    member = ada.model_copy(update={"groups": ("ops",)})
    assert Actor.model_validate_json(member.model_dump_json()) == member
