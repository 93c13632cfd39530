from hypothesis import given, settings

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.views import Call, Sketch, arrange
from sayso.core.text.summaries import list_values, write_shown
from service.edge.web.content.trees import group_digits, make_tree, place_rows, reads_backwards
from tests.sayso.core.rendering.test_table import ARGS


@settings(deadline=None)
@given(ARGS)
def test_tree_has_every_leaf(args: JsonObject) -> None:
    found = [leaf.text for branch in make_tree(args) for leaf in branch.leaves]
    assert found == ([leaf.text for leaf in list_values(args)] if args else [])


@settings(deadline=None)
@given(ARGS)
def test_parts_of_a_path_are_the_path_as_shown(args: JsonObject) -> None:
    view = arrange(Call("x", args), "tree", Sketch("x"), ())
    for placed in place_rows(view.rest):
        assert placed.above + placed.key == placed.row.path
        assert write_shown(placed.above) + write_shown(placed.key) == write_shown(placed.row.path)


def test_rows_below_the_same_key_repeat_its_path() -> None:
    args: JsonObject = {"a": {"b": 1, "c": [2, 3]}, "d": 4}
    view = arrange(Call("x", args), "tree", Sketch("x"), ())
    assert [(one.above, one.key, one.repeated) for one in place_rows(view.rest)] == [
        ("a.", "b", False),
        ("a.c", "[0]", False),
        ("a.c", "[1]", True),
        ("", "d", False),
    ]


def test_lists_of_plain_values_and_of_like_objects_are_compact() -> None:
    like: JsonObject = {"lines": [{"sku": "A", "count": 1}, {"sku": "B", "count": 2}], "tags": ["x", 1, None, []]}
    lines, tags = make_tree(like)
    assert (lines.columns, [[leaf.text for leaf in row] for row in lines.table]) == (
        ("sku", "count"),
        [["A", "1"], ["B", "2"]],
    )
    assert (tags.is_list, [leaf.text for leaf in tags.values]) == (True, ["x", "1", "null", "[]"])
    (unlike,) = make_tree({"lines": [{"sku": "A"}, {"sku": {"x": 1}}]})
    assert [child.key for child in unlike.children] == ["[0]", "[1]"]
    (long,) = make_tree({"tags": ["x" * 80, "y" * 80]})
    assert [child.key for child in long.children] == ["[0]", "[1]"]


def list_currencies(args: JsonObject, *, minor: bool = False) -> list[str]:
    return [leaf.currency for branch in make_tree(args, minor=minor) for leaf in branch.leaves]


def test_amount_has_the_currency_of_the_key_beside_it() -> None:
    paid: JsonObject = {"amount": 4890, "currency": "eur", "count": 4890}
    assert list_currencies(paid) == ["EUR", "", ""]
    assert list_currencies(paid, minor=True) == ["", "", ""]
    assert list_currencies({"lines": [paid, {**paid, "currency": "JPY"}]}) == ["EUR", "", "", "JPY", "", ""]
    assert list_currencies({"amount": 4890, "total": {"currency": "EUR"}}) == ["", ""]
    assert list_currencies({"amount": 4890, "currency": "EUR", "ccy": "USD"}) == ["", "", ""]
    assert list_currencies({"amount": "4890", "currency": '"><b>'}) == ["", ""]
    view = arrange(Call("x", {"pay": paid, "amount": 1}), "tree", Sketch("x"), ())
    assert [one.currency for one in place_rows(view.rest)] == ["EUR", "", "", ""]
    assert [one.currency for one in place_rows(view.rest, minor=True)] == ["", "", "", ""]


def test_group_digits_parts_whole_numbers() -> None:
    assert group_digits("4890") == ["4", "890"]
    assert group_digits("-1234567.8901") == ["-1", "234", "567.8901"]
    assert [group_digits(one) for one in ("123", "1e5", "null", "0.12345")] == [["123"], ["1e5"], ["null"], ["0.12345"]]


def test_reads_backwards_finds_right_to_left_letters() -> None:
    assert reads_backwards({"a": ["\u0645\u0631\u062d\u0628\u0627"]})
    assert reads_backwards({"\u05d0": 1})
    assert not reads_backwards({"a": "\u00fcmlaut \u0430"})
