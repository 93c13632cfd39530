"""Payments name the approval by amount and currency, if both are certain."""

from decimal import Decimal

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.money import write_amount, write_sum
from sayso.core.rendering.renderers import render_call


@pytest.mark.parametrize(
    ("number", "currency", "written"),
    [
        ("250", "EUR", "EUR 250.00"),
        ("4890.5", "EUR", "EUR 4,890.50"),
        ("0.125", "USD", "USD 0.125"),
        ("5000", "JPY", "JPY 5,000"),
        ("-1234567.891", "USD", "USD -1,234,567.891"),
    ],
)
def test_write_amount_keeps_every_digit(number: str, currency: str, written: str) -> None:
    assert write_amount(number, currency) == written


@pytest.mark.parametrize(
    ("number", "currency", "written"), [("280.0", "", "280"), ("1694.50", "", "1,694.5"), ("900", "EUR", "EUR 900.00")]
)
def test_write_sum_names_its_currency_if_any(number: str, currency: str, written: str) -> None:
    assert write_sum(Decimal(number), currency) == written


def test_payment_names_amount_and_recipient() -> None:
    view = render_call("refund_payment", {"note": "x", "amount": 4890, "currency": "eur", "to": "D. Whitfield"})
    assert (view.headline, view.effect) == ("Refund payment EUR 4,890.00 to D. Whitfield", "EUR 4,890.00")
    assert [row.path for row in view.notable] == ["amount", "currency", "to"]
    assert [row.path for row in view.rest] == ["note"]


def test_amount_with_its_currency_inside_is_one_amount() -> None:
    view = render_call("pay", {"amount": {"value": "12.5", "currency": "USD"}, "recipient": "Ann"})
    assert view.effect == "USD 12.50"


def test_payment_without_a_currency_has_no_effect_to_name() -> None:
    view = render_call("bank_account.transfer", {"amount": 5000, "to_account": "saving"})
    assert (view.headline, view.effect) == ("Bank account transfer 5,000 to saving", "")


@pytest.mark.parametrize(
    "args",
    [
        {"amount": 5000, "total": 7, "currency": "EUR"},
        {"amount": "lots", "currency": "EUR"},
        {"amount": True, "currency": "EUR"},
        {"amount": 5, "currency": "EUR", "currency_code": "USD"},
        {"amount": "[secret]", "currency": "EUR"},
    ],
)
def test_uncertain_amount_is_shown_as_a_tree(args: JsonObject) -> None:
    assert render_call("pay", args).renderer == "tree"


def test_amount_in_cents_is_not_named() -> None:
    schema: JsonObject = {"properties": {"amount": {"type": "integer", "description": "In cents."}}}
    assert render_call("pay", {"amount": 5000, "currency": "EUR"}, schema).effect == ""


def test_wrong_checksum_of_an_account_is_flagged() -> None:
    right: JsonObject = {"amount": 1, "currency": "EUR", "recipient": "DE89370400440532013000"}
    assert not render_call("pay", right).flags
    (flag,) = render_call("pay", {**right, "recipient": "DE89370400440532013001"}).flags
    assert "its checksum is wrong" in flag.sentence
