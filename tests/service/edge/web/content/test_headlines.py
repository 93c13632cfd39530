from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import ItemTool
from sayso.core.rendering.renderers import render_call
from service.edge.web.content.cards import Headline, make_headline
from tests.sayso.core.sentences.samples import make_item


def make(name: str, args: JsonObject) -> Headline:
    item = make_item({"tool": ItemTool(name=name, args=args, definition="d")})
    return make_headline(item, render_call(name, args))


def test_make_headline_splits_the_arguments_over_two_lines() -> None:
    args: JsonObject = {f"a{place}": place for place in range(8)}
    headline = make("count", args)
    assert headline.tool == "count"
    assert [leaf.path for leaf in headline.first] == ["a0", "a1"]
    assert [leaf.path for leaf in headline.rest] == ["a2", "a3", "a4"]
    assert headline.hidden_values == 3


def test_second_line_leaves_out_what_the_headline_names() -> None:
    headline = make("refund", {"order": "A-1", "amount": 250, "currency": "EUR", "lines": 2})
    assert [leaf.path for leaf in (*headline.first, *headline.rest)] == ["order", "lines"]
