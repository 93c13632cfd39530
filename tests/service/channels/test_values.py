"""What people type becomes the value that they mean."""

from typing import Any

import pytest
from pydantic import JsonValue

from sayso.core.records.items import ItemKind
from sayso.core.records.tools import ToolDefinition
from service.channels.deciding import read_value
from tests.sayso.samples import ask, pending


def read(typed: str, schema: dict[str, Any] | None, **fields: Any) -> JsonValue:
    item = pending(ask(kind=ItemKind.INPUT)).items[0].model_copy(update=fields)
    parameters: Any = {"type": "object", "properties": {"amount": schema} if schema is not None else {}}
    return read_value(typed, item, ToolDefinition(name="refund", parameters=parameters))


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (None, "12", "12"),
        ({"type": "string"}, " 12 ", "12"),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"enum": ["a", 7]}, "a", "a"),
        ({"enum": ["a", 7]}, "7", 7),
        ({"type": "number"}, "12.5", 12.5),
        ({"type": "number"}, "many", "many"),
        ({"type": "boolean"}, "true", True),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "object"}, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ],
)
def test_read_value_follows_the_schema(schema: dict[str, Any] | None, typed: str, value: JsonValue) -> None:
    assert read(typed, schema) == value


def test_read_value_prefers_the_items_own_schema() -> None:
    assert read("12", {"type": "number"}, response_schema={"type": "string"}) == "12"


@pytest.mark.parametrize(("typed", "value"), [("EUR", "EUR"), ("7", 7), ('{"a":1}', {"a": 1}), ("USD", "USD")])
def test_read_value_finds_the_choice(typed: str, value: JsonValue) -> None:
    assert read(typed, None, choices=("EUR", 7, {"a": 1})) == value
