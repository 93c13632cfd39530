from typing import Any

import pytest

from sayso.core.records.items import Doubt, Item, ItemTool
from sayso.core.rendering.renderers import render_call
from service.edge.web.content.cards import list_flags
from tests.sayso.core.sentences.samples import make_item
from tests.sayso.samples import person

DOUBT = Doubt(begun_at_ms=0, holder="w", attempt=1, idempotency_key="k")


def tool(**args: Any) -> dict[str, Any]:
    return {"tool": ItemTool(name="pay", args=args, definition="d")}


def flag(item: Item, *, held: bool = False) -> tuple[str, ...]:
    view = render_call(item.tool.name, item.tool.args)
    return list_flags(item, view, person("anna"), held=held)


@pytest.mark.parametrize(
    ("draft", "terms", "flags"),
    [
        ({}, {}, ()),
        ({"doubt": DOUBT}, {}, ("may already have run",)),
        (tool(host="ex\u0430mple.net"), {}, ("look-alike letters",)),
        (tool(аmount=1), {}, ("look-alike letters",)),
        ({"resembles": ("pay*",)}, {}, ("look-alike name",)),
        (tool(path="a\u202eb"), {}, ("hidden characters",)),
        (tool(command="sudo rm x"), {}, ("sudo", "deletes data")),
        (tool(sql="DELETE FROM t"), {}, ("no WHERE",)),
        ({}, {"fallback": {"action": "approve"}, "unattended_approval": True}, ("runs by itself",)),
        ({}, {"reviewers": ["anna"]}, ("only you",)),
        ({}, {"reviewers": ["anna", "ben"]}, ()),
    ],
)
def test_list_flags(draft: dict[str, Any], terms: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert flag(make_item(draft, **terms)) == flags


def test_list_flags_returns_the_two_most_severe() -> None:
    item = make_item({"doubt": DOUBT, **tool(path="a\u202eb")}, reviewers=["anna"])
    assert flag(item, held=True) == ("may already have run", "hidden characters")
    assert flag(make_item(), held=True) == ("frozen",)
