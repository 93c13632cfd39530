from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.records.items import Doubt, ItemTool
from service.core.operations.queries import parse_query, write_term
from tests.sayso.core.sentences.samples import make_item, make_record

ARGS: dict[str, Any] = {
    "order": "A-1932",
    "amount": 4890,
    "fee": "12.50",
    "lines": [{"sku": "CUP-7", "count": 2}],
    "notify": True,
    "note": "two words",
    "url": "a=b",
    "huge": "9" * 300,
    "odd": "NaN",
}


def fits(query: str, **fields: Any) -> bool:
    item = make_item({"tool": ItemTool(name="refund_payment", args=ARGS, definition="d")}).model_copy(update=fields)
    return parse_query(query).matches(make_record(item), item, mine=True)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "  ",
        "REFUND",
        "cup-7",
        "sus_1",
        "tool:refund agent:SUPP",
        "Tool:payment",
        '"two words"',
        'tool:"refund_payment" note',
        'tool:"Refund_Payment" agent:"support"',
        "amount>1000",
        "amount>=4890 amount<=4890 amount=4890.0",
        "count<3",
        "lines[0].count=2",
        "fee>12",
        "a=b",
    ],
)
def test_query_fits(query: str) -> None:
    assert fits(query)


@pytest.mark.parametrize(
    "query",
    [
        "zebra",
        "tool:payout",
        'tool:"refund"',
        'agent:"supp"',
        'agent:""',
        "is:lookalike",
        "is:hidden",
        "agent:travel",
        "refund zebra",
        '"words two"',
        "amount>4890",
        "mount>1000",
        "notify=1",
        "huge>1",
        "odd>1",
        "amount>nan",
        "is:doubt",
        "is:escalated",
    ],
)
def test_query_does_not_fit(query: str) -> None:
    assert not fits(query)


def test_query_by_state() -> None:
    assert fits("is:lookalike", resembles=("refund-payment",))
    assert fits("is:hidden", tool=ItemTool(name="pay", args={"to": "a\u200bb"}, definition="d"))
    assert fits("is:doubt", doubt=Doubt(begun_at_ms=0, holder="w", attempt=1, idempotency_key="k"))
    assert fits("IS:ESCALATED", escalated=1)


def test_query_with_an_unknown_state_has_a_problem() -> None:
    query = parse_query("is:frozen")
    assert query.problem == (
        "“is:frozen” is not a filter. Use is:mine, is:doubt, is:escalated, is:unattended, "
        "is:lookalike, is:hidden or is:unusual."
    )
    assert not fits("is:frozen")


def test_query_with_a_deadline() -> None:
    assert parse_query("due:2h tool:pay DUE:10m").due_within_ms == 600_000
    assert parse_query("due:1d").due_within_ms == 86_400_000
    assert parse_query("tool:pay").due_within_ms is None
    assert parse_query("due:soon").problem == "“due:soon” is not a time. Use one such as due:10m, due:1h or due:7d."


def test_replacing_a_filter_keeps_all_other_parts() -> None:
    query = parse_query('Tool:pay parcel is:doubt "two words" is:mine due:1h "left open')
    assert query.replace("tool", 'tool:"pay out"') == (
        'parcel is:doubt "two words" is:mine due:1h "left open" tool:"pay out"'
    )
    assert query.replace("mine") == 'Tool:pay parcel is:doubt "two words" due:1h "left open"'
    assert query.replace("") == "Tool:pay is:doubt is:mine due:1h"
    assert query.free == 'parcel "two words" "left open"'


@given(st.text(min_size=1, max_size=60))
def test_written_name_finds_exactly_itself(name: str) -> None:
    (term,) = parse_query(write_term("tool", name)).terms
    assert (term.kind, term.value, term.whole) == ("tool", name.casefold(), True)


@given(st.text(max_size=60))
def test_any_text_can_be_searched(text: str) -> None:
    fits(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=10**9, min_value=-(10**9)))
def test_comparisons_are_exact(number: Decimal) -> None:
    assert fits(f"amount>{number}") == (number < 4890)
