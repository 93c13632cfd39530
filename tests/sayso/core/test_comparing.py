from typing import Any

import pytest

from sayso.core.precedents import Measures, find_measures, find_unusual


def labels(earlier: list[Measures], **args: Any) -> list[str]:
    return [flag.label for flag in find_unusual(args, earlier)]


def pay(amounts: list[int], **args: Any) -> list[Measures]:
    return [find_measures({"amount": amount, "currency": "EUR", **args}) for amount in amounts]


@pytest.mark.parametrize(
    ("amount", "found"),
    [(129, []), (140, []), (600, []), (700, ["6x usual"]), (4_890, ["39x usual"])],
)
def test_few_earlier_calls_flag_what_is_far_off(amount: int, found: list[str]) -> None:
    earlier = pay([120, 129, 130, 140, 110, 125])
    assert labels(earlier, amount=amount, currency="EUR") == found


def test_many_earlier_calls_flag_what_is_above_the_95th_percentile() -> None:
    earlier = pay([*range(100, 200)])
    assert labels(earlier, amount=194, currency="EUR") == []
    assert labels(earlier, amount=196, currency="EUR") == ["more than usual"]
    assert labels(earlier, amount=400, currency="EUR") == ["3x usual"]


def test_nothing_is_unusual_among_too_few_calls_or_in_another_currency() -> None:
    assert labels(pay([1, 1, 1, 1]), amount=99_999, currency="EUR") == []
    assert labels(pay([1] * 30), amount=99_999, currency="JPY") == []


def test_new_recipient_is_flagged_where_recipients_recur() -> None:
    recurring = [find_measures({"to": name}) for name in ("ada", "ben", "ada", "ben", "ada", "ben")]
    (flag,) = find_unusual({"to": "Mallory"}, recurring)
    assert flag.label == "new recipient"
    assert flag.sentence == "New recipient: Mallory is in none of the last 6 approved calls of this agent."
    assert labels(recurring, to="Ada") == []


def test_new_recipient_is_usual_where_each_call_has_another() -> None:
    assert labels([find_measures({"to": f"customer {place}"}) for place in range(30)], to="Mallory") == []


def test_sentence_names_the_number_and_the_median() -> None:
    (flag,) = find_unusual({"amount": 4890, "currency": "EUR"}, pay([129] * 6))
    assert flag.sentence == (
        "38x usual: amount EUR 4,890 is above 95% of the last 6 approved calls of this agent; their median is 129."
    )
