"""A row is flagged by the share of instant approvals, from a fewest number on, and rows are in the order of names."""

from collections import Counter

import pytest

from service.features.insights.attention import Limits, list_people
from service.features.insights.facts import Facts, PersonFact
from service.features.insights.store import tally

LIMITS = Limits(look_ms=1_000, share=0.5, fewest=20)


def decide(name: str, *looks: int | None, denied: int = 0) -> Facts:
    people = [PersonFact(name, f"yes_{at}", True, look) for at, look in enumerate(looks)]
    people += [PersonFact(name, f"no_{at}", False, 400, denied=True) for at in range(denied)]
    return Facts(commit="sus_1 2", at_ms=1, people=tuple(people))


@pytest.mark.parametrize(
    ("looks", "flagged"),
    [
        ([700] * 20, True),
        ([700] * 10 + [9_000] * 10, True),
        ([700] * 9 + [9_000] * 11, False),
        ([700] * 19, False),
        ([None] * 40, False),
        ([700] * 10 + [9_000] * 10 + [None] * 20, True),
    ],
)
def test_flag_follows_the_share_of_measured_approvals(looks: list[int | None], flagged: bool) -> None:
    (anna,) = list_people(tally(decide("anna", *looks), {}), LIMITS)
    assert anna.flagged == flagged


def test_quick_denials_flag_nobody() -> None:
    (anna,) = list_people(tally(decide("anna", *[9_000] * 20, denied=60), {}), LIMITS)
    assert (anna.flagged, anna.instant, anna.approve_rate) == (False, 0, 0.25)


def test_rows_are_in_the_order_of_names() -> None:
    total: Counter[tuple[str, str]] = tally(decide("carl", 1), {}) + tally(decide("anna", *[1] * 9), {})
    assert [one.name for one in list_people(total, LIMITS)] == ["anna", "carl"]
