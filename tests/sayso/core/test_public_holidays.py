"""Public holidays by country and subdivision."""

from datetime import date

import pytest

from sayso.core.calendar import check_country, is_holiday
from sayso.errors import InvalidInput


def test_is_holiday_by_country() -> None:
    assert is_holiday("DE", "", date(2026, 12, 25))
    assert is_holiday("US", "", date(2026, 11, 26))
    assert not is_holiday("DE", "", date(2026, 11, 26))
    assert not is_holiday("", "", date(2026, 12, 25))


@pytest.mark.parametrize(("country", "subdivision"), [("", ""), ("DE", ""), ("DE", "BY"), ("US", "CA")])
def test_check_country_accepts_known_ones(country: str, subdivision: str) -> None:
    check_country(country, subdivision)


@pytest.mark.parametrize(
    ("country", "subdivision", "words"),
    [("XX", "", "holidays of 'XX' are unknown"), ("DE", "ZZ", "no subdivision 'ZZ'"), ("", "BY", "needs a country")],
)
def test_check_country_refuses_unknown_ones(country: str, subdivision: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check_country(country, subdivision)
