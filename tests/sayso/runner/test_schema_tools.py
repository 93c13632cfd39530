"""A function and a JSON Schema make a tool, where no signature says what the arguments are."""

from typing import Any

import pytest

from sayso.errors import InvalidInput
from sayso.runner.schema_tools import tool_from_schema
from sayso.runner.tools import CallContext
from tests.sayso.runner.test_tools import CONTEXT, run

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Bonn", "Köln"]}, "nights": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def book(**args: Any) -> Any:
    """Book a room."""
    return args


async def test_schema_tool_passes_arguments_unchanged() -> None:
    made = tool_from_schema(book, SCHEMA, name="hotel.book", idempotent=True)
    assert (made.name, made.definition.description, made.idempotent) == ("hotel.book", "Book a room.", True)
    assert made.definition.parameters == SCHEMA
    assert (await run(made, city="Köln", nights=2)).output == {"city": "Köln", "nights": 2}


async def test_schema_tool_passes_the_context() -> None:
    async def book_nights(city: str, call: CallContext, nights: int = 1) -> Any:
        return [city, nights, call.idempotency_key]

    assert (await run(tool_from_schema(book_nights, SCHEMA), city="Bonn")).output == [
        "Bonn",
        1,
        CONTEXT.idempotency_key,
    ]


async def test_schema_tool_refuses_arguments_that_do_not_fit() -> None:
    made = tool_from_schema(book, SCHEMA)
    assert made.find_fault({"city": "Rom"}) == 'city: "Rom" is not one of "Bonn", "Köln"'
    assert made.find_fault({"city": "Rom"}, ignore="city") is None
    assert made.find_fault({}, ignore="city") is None
    ended = await run(made, nights="two")
    assert (ended.success, "The arguments do not fit" in str(ended.error)) == (False, True)


def only_city(city: str) -> None: ...


def needs_more(city: str, stars: int, nights: int = 1) -> None: ...


def by_place(city: str, nights: int, /) -> None: ...


def called(city: str, call: CallContext, nights: int = 1) -> None: ...


@pytest.mark.parametrize(
    ("function", "schema", "said"),
    [
        (only_city, SCHEMA, "the function has no parameter 'nights'"),
        (needs_more, SCHEMA, "the parameter 'stars' has no default and is not required by the schema"),
        (by_place, SCHEMA, "the parameter 'city' cannot be given by name"),
        (called, {"properties": {"call": {}}, "required": ["city"]}, "no property can have its name"),
        (book, {"type": "nothing"}, "The schema cannot be used"),
        (book, {"anyOf": [{}] * 1_001}, "1001 alternatives"),
    ],
)
def test_tool_from_schema_refuses_a_mismatched_function(function: Any, schema: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        tool_from_schema(function, schema)
