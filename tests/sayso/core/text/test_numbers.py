from decimal import Decimal

import pytest
from babel import Locale

from sayso.core.rendering.money import place_currency, write_amount
from sayso.core.text.language import Numbers, find_numbers, speaking
from sayso.core.text.numbers import Ambiguous, read_number, write_digits, write_number
from service.edge.web.languages import find_numbers as find_locale_numbers
from service.edge.web.languages import load_catalogue

TYPED = [
    ("en", "19.90", "19.90"),
    ("en", "4,890.00", "4890.00"),
    ("en", "-1,234,567", "-1234567"),
    ("en", "1.234", "1.234"),
    ("en", "1e5", "1e5"),
    ("de", "19,90", "19.90"),
    ("de", "19.90", "19.90"),
    ("de", "4.890,00", "4890.00"),
    ("de", "1.234.567", "1234567"),
    ("de", "0.123", "0.123"),
    ("de", "1.234567", "1.234567"),
    ("de", "1,234", "1.234"),
    ("de", "-4890,5", "-4890.5"),
]


@pytest.mark.parametrize(("language", "typed", "stored"), TYPED)
def test_read_number_follows_the_language(language: str, typed: str, stored: str) -> None:
    with speaking(load_catalogue(language)):
        assert read_number(typed) == stored


@pytest.mark.parametrize(("language", "typed", "fraction"), [("de", "1.234", "1,234"), ("en", "-1,234", "-1.234")])
def test_read_number_refuses_one_group_of_three_digits(language: str, typed: str, fraction: str) -> None:
    with speaking(load_catalogue(language)):
        with pytest.raises(Ambiguous) as refused:
            read_number(typed)
        whole = fraction.replace(",", "").replace(".", "")
        assert (refused.value.whole, refused.value.fraction) == (whole, fraction)
        assert [read_number(reading) for reading in (whole, fraction)] == [whole, fraction.replace(",", ".")]


@pytest.mark.parametrize("typed", ["", "x", "1,23,4", "1.2.3", "4,890.00", "1.234,", "--1", "1,2345.6", "\u0663"])
def test_read_number_refuses_other_texts(typed: str) -> None:
    with speaking(load_catalogue("de")), pytest.raises(ValueError, match=r"^") as refused:
        read_number(typed)
    assert not isinstance(refused.value, Ambiguous)


def test_numbers_are_written_as_the_language_does() -> None:
    assert (write_number(4890), write_amount("4890", "EUR"), write_digits("4890.5")) == (
        "4,890",
        "EUR 4,890.00",
        "4890.5",
    )
    with speaking(load_catalogue("de")):
        assert (write_number(Decimal("4890.5")), write_number(1234567, 1)) == ("4.890,5", "1.234.567,0")
        assert (write_amount("4890", "EUR"), write_amount("5000", "JPY")) == ("4.890,00 EUR", "5.000 JPY")
        assert (write_digits("4890.5"), write_digits("1e+21")) == ("4890,5", "1e+21")
        assert place_currency("1", "") == "1"


def test_english_is_written_as_its_locale_says() -> None:
    assert find_numbers() == find_locale_numbers(Locale("en"))
    assert find_locale_numbers(Locale("de")) == Numbers(",", ".", currency_first=False)
