"""The sequential test finds who approves false calls without looking, and seldom flags who looks."""

from random import Random

import pytest

from service.features.control.drills import CAREFUL, is_flagged

DRILLS = 20
PEOPLE = 4_000


def is_ever_flagged(approved: list[bool]) -> bool:
    return any(is_flagged(approved[:count]) for count in range(1, len(approved) + 1))


def test_rubber_stamper_is_flagged_within_twenty_drills() -> None:
    flags = [is_flagged([True] * count) for count in range(1, DRILLS + 1)]
    assert flags.index(True) + 1 == 3
    assert all(flags[2:])


@pytest.mark.parametrize("approves", [0.0, 0.02, 0.05, CAREFUL])
def test_careful_reviewers_are_seldom_flagged(approves: float) -> None:
    random = Random(18)  # noqa: S311
    people = [[random.random() < approves for _ in range(DRILLS)] for _ in range(PEOPLE)]
    assert sum(map(is_ever_flagged, people)) <= 0.05 * PEOPLE


@pytest.mark.parametrize(("approves", "power"), [(0.9, 0.999), (0.6, 0.95)])
def test_careless_reviewers_are_flagged(approves: float, power: float) -> None:
    random = Random(18)  # noqa: S311
    people = [[random.random() < approves for _ in range(DRILLS)] for _ in range(PEOPLE)]
    assert sum(map(is_ever_flagged, people)) >= power * PEOPLE


def test_care_clears_an_earlier_flag() -> None:
    assert is_flagged([True] * 3)
    assert not is_flagged([True] * 3 + [False] * 4)
    assert is_flagged([True] * 3 + [False] * 4 + [True] * 3)
    assert not is_flagged([])
