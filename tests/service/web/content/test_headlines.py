from sayso.canonical_json import JsonObject
from sayso.records.items import ItemTool
from service.web.content.headlines import make_headline
from tests.sayso.sentences.samples import make_item


def test_make_headline_splits_the_arguments_over_two_lines() -> None:
    args: JsonObject = {f"a{place}": place for place in range(8)}
    headline = make_headline(make_item({"tool": ItemTool(name="pay", args=args, definition="d")}))
    assert headline.tool == "pay"
    assert [leaf.path for leaf in headline.first] == ["a0", "a1"]
    assert [leaf.path for leaf in headline.rest] == ["a2", "a3", "a4"]
    assert headline.hidden_values == 3
