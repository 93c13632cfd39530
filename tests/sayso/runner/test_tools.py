"""A typed function becomes a tool that validates its arguments and never raises."""

import threading
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.errors import InvalidInput
from sayso.runner.tools import CallContext, Tool, call_tool, tool

CONTEXT = CallContext(run_id="run_1", call_id="c0", idempotency_key="run_1:1.0")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    city: str = "Bonn"


@tool
def paint(
    colour: Colour,
    size: Literal["s", "l"],
    where: Address,
    tags: tuple[str, ...] = (),
    extras: dict[str, int] | None = None,
    due: date | None = None,
    times: Annotated[int, Field(ge=1, description="How often.")] = 1,
) -> dict[str, Any]:
    """Paint a house.

    With care.
    """
    return {"colour": colour, "where": where, "tags": tags, "extras": extras, "due": due, "times": times, "size": size}


async def run(tool: Tool, **args: Any) -> ToolResult:
    return await call_tool(tool, ToolCall(call_id="c0", index=0, name=tool.name, args=args), CONTEXT)


# The definition


def test_tool_definition_comes_from_signature_and_docstring() -> None:
    definition = paint.definition
    assert (definition.name, definition.description, definition.idempotent) == (
        "paint",
        "Paint a house.\n\nWith care.",
        False,
    )
    schema = definition.parameters
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["colour", "size", "where"]
    properties: Any = schema["properties"]
    assert properties["times"] == {"type": "integer", "minimum": 1, "description": "How often.", "default": 1}
    assert properties["size"] == {"enum": ["s", "l"], "type": "string"}
    assert "title" not in schema
    assert paint.timeout_s == 300


def test_tool_options_override_the_function() -> None:
    @tool(name="bank.transfer", idempotent=True, description="Move money.", timeout_s=2)
    def transfer(amount: int) -> None:
        """Not this."""

    assert (transfer.name, transfer.definition.description) == ("bank.transfer", "Move money.")
    assert (transfer.idempotent, transfer.timeout_s) == (True, 2)


def test_context_is_no_argument_of_the_model() -> None:
    @tool
    def send(to: str, call: CallContext) -> str:
        return call.idempotency_key

    assert list(send.definition.parameters["properties"]) == ["to"]  # type: ignore[arg-type]


async def test_parameter_may_have_a_name_reserved_by_pydantic() -> None:
    @tool
    def dump(json: str, copy: bool, model_config: int, _private: str = "p", schema: str = "s") -> list[Any]:
        return [json, copy, model_config, _private, schema]

    properties: Any = dump.definition.parameters["properties"]
    assert list(properties) == ["json", "copy", "model_config", "_private", "schema"]
    assert (await run(dump, json="j", copy=True, model_config=1)).output == ["j", True, 1, "p", "s"]
    assert (await run(dump, json="j", copy=True, model_config=1, p0="x")).error is not None


def test_parameter_named_call_may_be_an_argument() -> None:
    @tool
    def ring(call: str) -> str:
        return call

    assert list(ring.definition.parameters["properties"]) == ["call"]  # type: ignore[arg-type]


def untyped(amount) -> None: ...  # type: ignore[no-untyped-def]
def many(*amounts: int) -> None: ...
def anything(**amounts: int) -> None: ...
def placed(amount: int, /) -> None: ...
def unknown_type(amount: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def calls(callback: Callable[[], int]) -> None: ...
def foreign(lock: threading.Event) -> None: ...
def elsewhere(context: CallContext) -> None: ...
def generates(amount: int) -> Any:
    yield amount


class Till:
    def pay(self, amount: int) -> int:
        return amount


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (untyped, "'amount' of tool untyped has no type"),
        (many, "'*amounts' of tool many cannot be given by name"),
        (anything, "'**amounts' of tool anything cannot be given by name"),
        (placed, "'amount' of tool placed cannot be given by name"),
        (unknown_type, "types of tool unknown_type cannot be read: NameError"),
        (calls, "Tool calls has a parameter whose type JSON cannot carry"),
        (foreign, "Tool foreign has a parameter whose type JSON cannot carry"),
        (elsewhere, "takes the context; name it 'call'"),
        (generates, "Tool generates is not a plain function"),
        (Colour, "Tool Colour is not a plain function"),
        (Till.pay, "Decorate the method of one object, tool(thing.pay)"),
    ],
)
def test_tool_refuses_an_unusable_function(function: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tool(function)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("words", "options"), [("name", {"name": "a b"}), ("name", {"name": ""}), ("more than 0", {"timeout_s": 0})]
)
def test_tool_refuses_a_bad_name_or_timeout(words: str, options: Any) -> None:
    with pytest.raises(InvalidInput, match=words):
        tool(**options)(len)


# Arguments


def test_tool_refuses_a_description_too_long() -> None:
    with pytest.raises(InvalidInput, match="The definition of tool 'len' is invalid: description:"):
        tool(name="len", description="x" * 20_001)(Till().pay)


async def test_arguments_have_the_types_of_the_signature() -> None:
    args: JsonObject = {
        "colour": "red",
        "size": "l",
        "where": {"street": "Weg 1"},
        "tags": ["a"],
        "extras": {"x": 1},
        "due": "2026-11-21",
        "times": 2.0,
    }
    result = await run(paint, **args)
    assert result.error is None
    assert result.output == {**args, "where": {"street": "Weg 1", "city": "Bonn"}, "times": 2}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"colour": "green"}, "colour: Input should be 'red' or 'blue'"),
        ({"times": "2"}, "times: Input should be a valid integer"),
        ({"times": 1.5}, "times: Input should be a valid integer"),
        ({"times": True}, "times: Input should be a valid integer"),
        ({"times": 0}, "times: Input should be greater than or equal to 1"),
        ({"where": {}}, "where.street: Field required"),
        ({"tags": "a"}, "tags: Input should be a valid array"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"due": "tomorrow"}, "due: Input should be a valid date"),
        ({"where": {"street": float("nan")}}, "$.where.street is not a finite number"),
    ],
)
async def test_find_fault_names_arguments_that_do_not_fit(changes: Any, fault: str) -> None:
    args = {"colour": "red", "size": "l", "where": {"street": "Weg 1"}, **changes}
    found = paint.find_fault(args)
    assert found is not None
    assert fault in found
    assert paint.read(args) is None
    result = await run(paint, **args)
    assert fault in str(result.error)
    assert not result.success


def test_find_fault_ignores_an_argument_given_later() -> None:
    args: JsonObject = {"colour": "red", "size": "l"}
    assert paint.find_fault(args) == "where: Field required"
    assert paint.find_fault(args, ignore="where") is None
    assert paint.find_fault({**args, "where": {"street": 1}}, ignore="where") is None
    assert paint.find_fault({"size": "l"}, ignore="where") == "colour: Field required"


def test_find_fault_counts_many_faults() -> None:
    @tool
    def wide(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None: ...

    assert str(wide.find_fault({})).endswith("e: Field required; and 2 more")

    def stumble(word: str) -> str:
        raise KeyError(word)

    @tool
    def odd(word: Annotated[str, AfterValidator(stumble)]) -> None: ...

    assert odd.find_fault({"word": "x"}) == "KeyError: 'x'"
    assert odd.read({"word": "x"}) is None


async def test_parsed_arguments_are_not_parsed_again() -> None:
    seen: list[str] = []

    def note(word: str) -> str:
        seen.append(word)
        return word.upper()

    @tool
    async def say(word: Annotated[str, AfterValidator(note)]) -> str:
        """Say a word."""
        return word

    read = say.read({"word": "x"})
    assert read is not None
    result = await call_tool(say, ToolCall(call_id="c0", index=0, name="say", args={"word": "x"}), CONTEXT, read=read)
    assert (result.output, seen) == ("X", ["x"])
