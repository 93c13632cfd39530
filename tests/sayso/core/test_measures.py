from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.precedents import find_measures, read_measures, write_measures


def quantities(**args: Any) -> dict[str, str]:
    return {key: str(number) for key, number in find_measures(args).quantities.items()}


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"amount": 12.5, "currency": "eur"}, {"amount EUR": "12.5"}),
        ({"amount": "12.50"}, {"amount": "12.50"}),
        ({"amount": {"value": 3, "amount": 2, "currency": "USD"}}, {"amount.value": "3", "amount.amount USD": "2"}),
        ({"lines": [{"count": 2}, {"count": 7}]}, {"lines[].count": "7"}),
        ({"order_id": 7, "port": 22, "year": 2026, "zip": 10_115}, {}),
        ({"count": True, "note": "12", "none": None, "nights": 10**20}, {}),
        ({"x" * 200: 1}, {}),
    ],
)
def test_find_measures_reads_numbers_that_measure_something(args: dict[str, Any], found: dict[str, str]) -> None:
    assert quantities(**args) == found


def test_find_measures_reads_recipients_at_any_depth() -> None:
    args: JsonObject = {
        "to": ["a@b.example", " "],
        "mail": {"cc": "c@d.example"},
        "payee": {"name": "Mara"},
        "note": "hello",
    }
    assert [*find_measures(args).recipients.values()] == ["a@b.example", "c@d.example", "Mara"]


def test_find_measures_takes_recipients_that_differ_in_case_as_one() -> None:
    assert find_measures({"to": "Mara"}).recipients.keys() == find_measures({"to": "mara "}).recipients.keys()


def test_find_measures_reads_a_bounded_number_of_values() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    wide = find_measures({f"n{place}x": place for place in range(100_000)})
    assert len(wide.quantities) == 8


def test_measures_are_stored_without_the_texts_of_recipients() -> None:
    measures = find_measures({"amount": 5, "currency": "EUR", "to": "mara@lindqvist.example"})
    written = write_measures(measures)
    assert "lindqvist" not in written
    stored = read_measures(written)
    assert (stored.quantities, [*stored.recipients]) == (measures.quantities, [*measures.recipients])


@pytest.mark.parametrize("written", ["", "[]", "{}", "[1, 2]", '[{"a": "x"}, []]', '[{"a": null}, []]'])
def test_read_measures_takes_what_it_cannot_read_as_empty(written: str) -> None:
    assert not read_measures(written)
