from typing import Any

import pytest

from sayso.core.precedents import Measures, find_measures, find_unusual, is_near, name_subjects


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


REFUND: dict[str, Any] = {"order_id": "A-1", "customer": "D-1", "amount": 100, "currency": "EUR", "reason": "broken"}
PAYMENT: dict[str, Any] = {"from": "our account", "to": "Mara", "amount": 100, "currency": "EUR"}
FILE: dict[str, Any] = {"path": "/etc/hosts", "content": "127.0.0.1 localhost"}
PLAIN: dict[str, Any] = {"command": "deploy", "count": 3}


@pytest.mark.parametrize(
    ("before", "changes", "near"),
    [
        (REFUND, {"amount": 99}, True),
        (REFUND, {"amount": "99.00", "reason": "it came late"}, True),
        (REFUND, {"customer": "d-1 ", "amount": 5}, True),
        (REFUND, {"order_id": "A-2"}, True),
        (REFUND, {"order_id": "A-2", "customer": "D-2"}, False),
        (PAYMENT, {"amount": 2}, True),
        (PAYMENT, {"to": "Ben"}, False),
        (FILE, {"content": "10.0.0.1 localhost"}, True),
        (FILE, {"path": "/etc/passwd"}, False),
        (PLAIN, {"count": 4}, True),
        (PLAIN, {"command": "destroy"}, False),
    ],
)
def test_near_calls_share_what_they_are_about(before: Any, changes: Any, near: bool) -> None:
    after = {**before, **changes}
    assert is_near(before, after) is near
    assert is_near(after, before) is near
    if near:
        assert set(name_subjects(before)) & set(name_subjects(after))


def test_subjects_hide_their_values_and_are_few() -> None:
    names = name_subjects({f"{place}_id": f"secret {place}" for place in range(500)})
    assert len(names) == 9
    assert all(len(name) == 16 and "secret" not in name for name in names)
    assert name_subjects({"amount": 5}) == ()
    assert not is_near({"amount": 5}, {"amount": 6})
