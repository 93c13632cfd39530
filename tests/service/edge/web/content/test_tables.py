"""Tables of alike items hide no value, cut none, and sum exactly."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.precedents import find_measures
from sayso.core.records.items import Answer, Doubt, ItemKind, ItemTool, Prompt
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.renderers import render_call
from sayso.core.text.summaries import list_values
from service.core.store.precedents import Earlier, Kind
from service.edge.web.content.cards import Card, make_cards
from service.edge.web.content.kinds import find_alike
from service.edge.web.content.tables import Table, make_inbox_rows, make_tables
from tests.sayso.core.sentences.samples import make_decision, make_item, make_record
from tests.sayso.samples import person

KIND = Kind("demo", "support", "pay")


def make(args: JsonObject, place: int = 0, earlier: Earlier | None = None, **draft: Any) -> Card:
    terms, definition = draft.pop("terms", {}), draft.pop("definition", None)
    digest = definition.digest if definition is not None else "d" * 64
    item = make_item({"tool": ItemTool(name="pay", args=args, definition=digest), **draft}, **terms)
    record = make_record(item, id=f"sus_{place}")
    (card,) = make_cards([record], person("anna"), (), 0, definitions={digest: definition}, earlier=earlier or {})
    return card


def pay(
    amounts: list[Any], earlier: Earlier | None = None, definition: ToolDefinition | None = None, **args: Any
) -> list[Card]:
    return [
        make(
            {"order": f"A-{place}", "amount": amount, "currency": "EUR", **args}, place, earlier, definition=definition
        )
        for place, amount in enumerate(amounts)
    ]


def table_of(cards: list[Card]) -> Table:
    (table,), others = make_tables(cards)
    assert others == []
    return table


TEXTS = st.text(max_size=250)
VALUES = st.one_of(TEXTS, st.integers(-10, 10), st.booleans(), st.none(), st.lists(st.integers(0, 2), max_size=2))
ARGS = st.dictionaries(st.sampled_from(["a", "b.c", "amount", "currency", "\u202eto"]), VALUES, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(ARGS, min_size=1, max_size=8))
def test_every_value_of_every_row_is_common_or_in_a_cell(calls: list[JsonObject]) -> None:
    cards = [make(args, place) for place, args in enumerate(calls)]
    tables, others = make_tables(cards, 1)
    lines = [(table, line) for table in tables for line in table.lines]
    assert sorted(card.row_id for card in (*others, *(line.card for _, line in lines))) == sorted(
        card.row_id for card in cards
    )
    for table, line in lines:
        shown = [*table.common]
        for column, cell in zip(table.columns, line.cells, strict=True):
            assert cell.leaf.path == column.path
            assert len(cell.leaf.text) <= 200
            assert not cell.leaf.cut
            if not column.in_prompt:
                shown.append(cell.leaf)
        args = line.card.item.tool.args
        values = list_values(args) if args else []
        assert sorted((leaf.path, leaf.text) for leaf in shown) == sorted((leaf.path, leaf.text) for leaf in values)


def test_common_values_are_in_a_line_and_others_in_columns() -> None:
    table = table_of(pay([101, 1576.15, 4890]))
    assert [(leaf.path, leaf.text) for leaf in table.common] == [("currency", "EUR")]
    assert [column.path for column in table.columns] == ["order", "amount"]
    assert [cell.leaf.text for cell in table.lines[1].cells] == ["A-1", "1576.15"]
    (amount,) = table.sums
    assert (amount.total, amount.least, amount.most, amount.decimals, amount.currency) == (
        Decimal("6567.15"),
        Decimal(101),
        Decimal(4890),
        2,
        "EUR",
    )
    assert table.ticked_total(1, {"sus_0-i1", "sus_1-i1"}) == Decimal("1677.15")


def test_amounts_of_a_column_name_their_currency() -> None:
    table = table_of(pay([129.5, 12000, 99, 4]))
    assert [(cell.leaf.text, cell.leaf.currency) for line in table.lines for cell in line.cells if cell.units] == [
        ("129.5", "EUR"),
        ("12000", "EUR"),
        ("99", "EUR"),
        ("4", "EUR"),
    ]


def test_amounts_in_cents_name_no_currency() -> None:
    amount: JsonObject = {"type": "integer", "description": "How much, in cents"}
    cents = ToolDefinition(name="pay", description="", parameters={"properties": {"amount": amount}})
    cards = pay([4890, 129, 99, 120], definition=cents)
    table = table_of(cards)
    assert [column.currency for column in table.columns] == ["", ""]
    assert {cell.leaf.currency for line in table.lines for cell in line.cells} == {""}


def test_amounts_of_several_currencies_have_no_sum() -> None:
    cards = [make({"amount": 5, "currency": one}, place) for place, one in enumerate(("EUR", "USD", "JPY"))]
    assert table_of([*cards, make({"amount": 6, "currency": "EUR"}, 9)]).sums == []


@pytest.mark.parametrize(
    ("args", "draft"),
    [
        ({"amount": "5", "currency": "EUR", "order": "x"}, {}),
        ({"amount": 5, "currency": "EUR"}, {}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"rule_id": "another"}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"terms": {"quorum": {"approve": 2}}}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"terms": {"fallback": {"action": "fail"}}}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"allowed": (Answer.APPROVE, Answer.DENY)}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"subagent": "mailer"}),
        ({"amount": 5, "currency": "EUR", "order": "x"}, {"prompt": Prompt(title="Another")}),
    ],
    ids=["type", "path", "rule", "quorum", "fallback", "may edit", "sub-agent", "prompt"],
)
def test_items_that_differ_in_more_than_values_are_not_alike(args: JsonObject, draft: dict[str, Any]) -> None:
    usual, other = make({"amount": 5, "currency": "EUR", "order": "y"}), make(args, 1, **draft)
    assert usual.alike
    assert other.alike
    assert usual.alike != other.alike


def test_deadlines_may_differ_among_alike_items() -> None:
    assert make({"a": 1}).alike == make({"a": 1}, 1, terms={"timeout_s": 9, "remind_after_s": [1]}).alike


@pytest.mark.parametrize(
    ("args", "draft"),
    [
        ({"a": "x\u202ey"}, {}),
        ({"a": "ex\u0430mple"}, {}),
        ({"a": "x" * 2_100}, {}),
        ({"a": 1}, {"doubt": Doubt(begun_at_ms=0, holder="w", attempt=1, idempotency_key="k")}),
        ({"a": 1}, {"resembles": ("pay*",)}),
        ({"a": 1}, {"kind": ItemKind.INPUT, "allowed": (Answer.VALUE,), "target_arg": "a"}),
        ({"a": 1}, {"terms": {"match_number": True}}),
        ({"a": "hunter2hunter2"}, {"terms": {"secrets": ["a"]}}),
        ({"a": 1}, {"prompt": Prompt(reason="ex\u0430mple")}),
        ({"a": 1}, {"terms": {"reviewers": ["ben"]}}),
    ],
    ids=["hidden", "look-alike", "long", "doubt", "name", "value", "number", "secret", "reason", "not mine"],
)
def test_items_that_need_a_page_of_their_own_are_alike_to_none(args: JsonObject, draft: dict[str, Any]) -> None:
    assert make(args, **draft).alike == ""


def test_item_that_another_reviewer_edited_is_alike_to_none() -> None:
    item = make_item(quorum={"approve": 2})
    edited = item.model_copy(update={"decisions": (make_decision("approve", args={"amount": 1}),)})
    view = render_call(item.tool.name, item.tool.args)
    assert find_alike(make_record(item), item, view, None)
    assert find_alike(make_record(edited), edited, view, None) == ""


def test_row_with_a_long_differing_value_leaves_the_table() -> None:
    cards = [make({"note": text}, place) for place, text in enumerate(("a", "b", "c", "x" * 201))]
    (table,), others = make_tables(cards)
    assert [line.card.row_id for line in table.lines] == ["sus_0-i1", "sus_1-i1", "sus_2-i1"]
    assert [card.row_id for card in others] == ["sus_3-i1"]
    same = table_of([make({"note": "x" * 201, "n": place}, place) for place in range(3)])
    assert [leaf.path for leaf in same.common] == ["note"]


def test_differing_texts_of_the_request_are_columns() -> None:
    cards = [make({"a": 1}, place, prompt=Prompt(reason="Same", title=f"No. {place}")) for place in range(3)]
    table = table_of(cards)
    assert [(column.path, column.in_prompt) for column in table.columns] == [("title", True)]
    assert [leaf.text for leaf in table.common_prompt] == ["Same"]
    assert [column.name for column in table.columns] == ["Question"]
    assert [(name, leaf.text) for name, leaf in table.requests] == [("Reason", "Same")]


def test_amounts_have_their_currency_in_the_line_and_in_each_cell() -> None:
    same = table_of(pay([100, 100, 100]))
    assert [(leaf.path, leaf.currency) for leaf in same.common] == [("amount", "EUR"), ("currency", "")]
    mixed = table_of([make({"amount": 5, "currency": code}, place) for place, code in enumerate(("EUR", "USD", "CHF"))])
    assert [line.cells[0].leaf.currency for line in mixed.lines] == ["EUR", "USD", "CHF"]
    cents = ToolDefinition(name="pay", parameters={"properties": {"amount": {"description": "In cents"}}})
    assert [leaf.currency for leaf in table_of(pay([100, 100, 100], definition=cents)).common] == ["", ""]


def test_outliers_of_the_table_start_without_a_tick() -> None:
    table = table_of(pay([100, 101, 99, 102, 700]))
    assert [line.reasons for line in table.lines] == [(), (), (), (), ("over 5x the median here",)]


def test_what_is_unusual_among_earlier_approvals_starts_without_a_tick() -> None:
    earlier = {KIND: tuple(find_measures({"amount": 129, "currency": "EUR", "to": "ada"}) for _ in range(6))}
    cards = [
        make({"amount": amount, "currency": "EUR", "to": to}, place, earlier)
        for place, (amount, to) in enumerate(((120, "ada"), (4_902, "ada"), (121, "mallory")))
    ]
    assert [line.reasons for line in table_of(cards).lines] == [(), ("38x usual",), ("new recipient",)]
    assert table_of(cards).labels == ["38x usual", "new recipient"]


def test_inbox_shows_tables_and_single_cards_by_deadline() -> None:
    alike = [make({"a": place}, place, terms={"timeout_s": 100}) for place in range(3)]
    early, late = make({"b": 1}, 8, terms={"timeout_s": 1}), make({"b": 1}, 9, terms={"timeout_s": 900})
    rows = make_inbox_rows([early, *alike, late])
    assert [row.row_id for row in rows] == ["sus_8-i1", f"alike-{alike[0].alike}", "sus_9-i1"]
