"""Amounts are exact, and nothing that is no plain amount counts as one."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.counters.readings import MAX_AMOUNT, UNIT, read_amount, write_amount
from sayso.errors import InvalidInput


@pytest.mark.parametrize(
    ("value", "units"),
    [
        (0, 0),
        (5, 5 * UNIT),
        (19.9, 19_900_000),
        ("19.90", 19_900_000),
        (1e-7, 1),
        ("0.0000001", 1),
        (0.1 + 0.2, 300_001),
        (MAX_AMOUNT, MAX_AMOUNT * UNIT),
    ],
)
def test_read_amount_in_millionths_rounded_up(value: Any, units: int) -> None:
    assert read_amount(value, "args.amount") == units


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "negative"),
        (-0.5, "negative"),
        ("-3", "negative"),
        (-0.0000001, "negative"),
        (-5e-29, "negative"),
        ("-0.001", "negative"),
        ("-0.000000000000000000000000000001", "negative"),
        (MAX_AMOUNT + 1, "between"),
        (10**400, "between"),
        (1e300, "plain number"),
        (float("nan"), "plain number"),
        ("1e3", "plain number"),
        (" 5", "plain number"),
        ("5 EUR", "plain number"),
        ("٥", "plain number"),
        ("", "plain number"),
        (True, "not a number"),
        (None, "not a number"),
        ([5], "not a number"),
        ({"n": 5}, "not a number"),
    ],
)
def test_read_amount_refuses_what_is_no_amount(value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^args.amount .*{problem}"):
        read_amount(value, "args.amount")


@given(st.integers(0, 10**12), st.integers(0, 6))
def test_read_amount_of_a_decimal_text_is_exact(number: int, places: int) -> None:
    text = format(Decimal(number).scaleb(-places), "f")
    if Decimal(text) <= MAX_AMOUNT:
        assert read_amount(text, "x") == Decimal(text) * UNIT


@pytest.mark.parametrize(
    ("units", "text"),
    [(0, "0"), (1_000 * UNIT, "1,000"), (19_900_000, "19.90"), (19_950_100, "19.9501"), (1, "0.000001")],
)
def test_write_amount(units: int, text: str) -> None:
    assert write_amount(units) == text
