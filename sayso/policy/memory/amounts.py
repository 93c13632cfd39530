"""Exact amounts: whole numbers of millionths, so that no sum of money drifts."""

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any

from sayso.errors import InvalidInput

UNIT = 1_000_000
"""The units of 1."""

MAX_AMOUNT = 9_000_000_000
"""The largest amount that is counted; sums stay exact in the store."""

_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,30})?")


def read_amount(value: Any, name: str) -> int:
    """Return a number, or a text such as "19.90", in units; a smaller fraction is rounded up.

    Raises `InvalidInput` for anything else, a negative amount, and one above `MAX_AMOUNT`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInput(f"{name} is not a number")
    if isinstance(value, int):
        if abs(value) > MAX_AMOUNT:  # Python refuses to write very long integers
            raise InvalidInput(f"{name} is not between 0 and {MAX_AMOUNT:,}")
        return _check_range(value * UNIT, name)
    text = value if isinstance(value, str) else _write_plain(value)
    if not _DECIMAL.fullmatch(text):
        raise InvalidInput(f"{name} is not a plain number such as 19.90")
    number = Decimal(text)
    if number < 0:  # however small: rounded up to a unit it would be 0
        raise InvalidInput(f"{name} is negative")
    return _check_range(to_units(number), name)


def to_units(number: Decimal) -> int:
    """Return a number in units; a smaller fraction is rounded up."""
    return int((number * UNIT).to_integral_value(ROUND_CEILING))


def write_amount(units: int) -> str:
    """Return units as a number, such as `1,000` or `19.90`."""
    number = Decimal(units) / UNIT
    if number == number.to_integral_value():
        return f"{int(number):,}"
    return f"{number:,.2f}" if number == round(number, 2) else f"{number.normalize():,f}"


def _write_plain(value: float) -> str:
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text


def _check_range(units: int, name: str) -> int:
    if units < 0:
        raise InvalidInput(f"{name} is negative")
    if units > MAX_AMOUNT * UNIT:
        raise InvalidInput(f"{name} is not between 0 and {MAX_AMOUNT:,}")
    return units
