from typing import Any

import pytest

from sayso.records.items import Doubt, ItemTool
from service.web.content.flags import list_flags
from tests.sayso.samples import person
from tests.sayso.sentences.samples import make_item

DOUBT = Doubt(begun_at_ms=0, holder="w", attempt=1, idempotency_key="k")


def tool(**args: Any) -> dict[str, Any]:
    return {"tool": ItemTool(name="pay", args=args, definition="d")}


@pytest.mark.parametrize(
    ("draft", "terms", "flags"),
    [
        ({}, {}, ()),
        ({"doubt": DOUBT}, {}, ("may already have run",)),
        (tool(host="ex\u0430mple.net"), {}, ("look-alike letters",)),
        (tool(аmount=1), {}, ("look-alike letters",)),
        ({"resembles": ("pay*",)}, {}, ("look-alike name",)),
        (tool(path="a\u202eb"), {}, ("hidden characters",)),
        ({}, {"fallback": {"action": "approve"}, "unattended_approval": True}, ("runs by itself",)),
        ({}, {"reviewers": ["anna"]}, ("only you",)),
        ({}, {"reviewers": ["anna", "ben"]}, ()),
    ],
)
def test_list_flags(draft: dict[str, Any], terms: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert list_flags(make_item(draft, **terms), person("anna"), held=False) == flags


def test_list_flags_returns_the_two_most_severe() -> None:
    item = make_item({"doubt": DOUBT, **tool(path="a\u202eb")}, reviewers=["anna"])
    assert list_flags(item, person("anna"), held=True) == ("may already have run", "hidden characters")
    assert list_flags(make_item(), person("anna"), held=True) == ("frozen",)
