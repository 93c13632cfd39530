"""Public holidays of countries and their parts."""

from datetime import date
from functools import lru_cache

from sayso.errors import InvalidInput


def is_holiday(country: str, subdivision: str, day: date) -> bool:
    """Return whether the day is a public holiday; never without a country."""
    return bool(country) and day in _holidays_of(country, subdivision, day.year)


def check_country(country: str, subdivision: str) -> None:
    """Raise `InvalidInput` for a country or a part of it whose holidays are unknown."""
    known = _list_countries()
    if subdivision and not country:
        raise InvalidInput("A subdivision needs a country. Give both, or neither.")
    if country and country not in known:
        raise InvalidInput(f"The holidays of {country!r} are unknown. Use an ISO 3166 code such as DE, or omit it.")
    if subdivision and subdivision not in known[country]:
        parts = ", ".join(known[country]) or "none"
        raise InvalidInput(f"{country} has no subdivision {subdivision!r}. Choose one of these or omit it: {parts}.")


@lru_cache(maxsize=256)
def _holidays_of(country: str, subdivision: str, year: int) -> frozenset[date]:
    import holidays

    return frozenset(holidays.country_holidays(country, subdiv=subdivision or None, years=year))


@lru_cache(maxsize=1)
def _list_countries() -> dict[str, list[str]]:
    import holidays

    return holidays.list_supported_countries()
