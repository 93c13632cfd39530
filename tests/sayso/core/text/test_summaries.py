import json

from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject, canonical_json, parse_json
from sayso.core.text.summaries import SUMMARY_PAIRS, Leaf, list_values, summarize, write_leaf, write_pretty
from tests.service.edge.web.stories import REFUND_ARGS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def test_list_values_returns_every_path() -> None:
    leaves = list_values({"a": {"b": [1, {"c": None}]}, "e": [], "t": "x y"})
    assert leaves == [
        Leaf("a.b[0]", "1", literal=True),
        Leaf("a.b[1].c", "null", literal=True),
        Leaf("e", "[]", literal=True),
        Leaf("t", "x y", literal=False),
    ]


def test_list_values_quotes_ambiguous_texts() -> None:
    for text in ("10", "true", "null", "", " padded", '"quoted"', "[1]", "1e5"):
        assert write_leaf(text) == json.dumps(text), text
    assert write_leaf("10 apples") == "10 apples"
    assert write_leaf(10) == "10"


def test_list_values_distinguishes_keys_with_blanks() -> None:
    shown = [leaf.path for leaf in list_values({"to": 1, "to ": 2, "to\n": 3, " to": 4, "to\u200b": 5, 'to"': 6})]
    assert shown == ["to", '["to "]', '["to\\n"]', '[" to"]', '["to\u200b"]', '["to\\""]']


def test_summarize_shows_the_first_values_and_counts_the_others() -> None:
    summary = summarize(REFUND_ARGS)
    assert [leaf.path for leaf in summary.shown] == ["order_id", "amount", "currency", "notify", "note"]
    assert summary.shown[-1].cut
    assert summary.hidden_values == len(list_values(REFUND_ARGS)) - 5 == 2


def test_summarize_of_few_values_omits_nothing() -> None:
    assert summarize({"city": "Bern"}).hidden_values == 0
    assert summarize({}).shown == ()


def test_write_pretty_writes_numbers_in_canonical_form() -> None:
    assert (
        write_pretty({"big": 1e21, "small": 1e-7, "whole": 10.0})
        == '{\n  "big": 1e+21,\n  "small": 1e-7,\n  "whole": 10\n}'
    )


@given(JSON)
def test_write_pretty_keeps_the_value(value: object) -> None:
    assert canonical_json(parse_json(write_pretty(value))) == canonical_json(value)  # type: ignore[arg-type]


@given(st.dictionaries(st.text(max_size=40), JSON, max_size=9))
def test_summarize_keeps_its_size_limits(args: JsonObject) -> None:
    summary = summarize(args)
    assert len(summary.shown) <= SUMMARY_PAIRS
    assert summary.hidden_values == max(0, len(list_values(args) if args else []) - SUMMARY_PAIRS)


def test_list_values_quotes_keys_that_resemble_paths() -> None:
    leaves = list_values({"to": {"name": 1}, "to.name": 2, "to[0]": 3, "": 4})
    assert [leaf.path for leaf in leaves] == ["to.name", '["to.name"]', '["to[0]"]', '[""]']
