from typing import Any, Literal

import pytest
from pydantic import BaseModel, create_model

from service.web.content.schemas import Shape, properties_of, shape_of


def kind_of(schema: Any, root: Any = None) -> tuple[str, bool]:
    shape = shape_of(schema, root or {})
    return shape.kind, shape.nullable


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        ({"type": "string"}, "text", False),
        ({"type": "integer"}, "integer", False),
        ({"type": "number"}, "number", False),
        ({"type": "boolean"}, "boolean", False),
        ({"type": ["string", "null"]}, "text", True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer", True),
        ({"enum": ["a", "b"]}, "choice", False),
        ({"enum": ["a", None]}, "choice", True),
        ({"const": 5}, "choice", False),
        ({"enum": [["a"], "b"]}, "json", False),
        ({"type": "array", "items": {"type": "string"}}, "json", False),
        ({"type": ["string", "integer"]}, "json", False),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "json", False),
        ({}, "json", False),
        (True, "json", False),
        ("nonsense", "json", False),
        ({"type": 7}, "json", False),
        ({"$ref": "#/nowhere"}, "json", False),
        ({"$ref": "http://example.com/schema.json"}, "json", False),
    ],
)
def test_each_schema_gets_the_control_that_suits_it(schema: Any, kind: str, nullable: bool) -> None:
    assert kind_of(schema) == (kind, nullable)


def test_a_reference_is_followed_and_its_own_words_win() -> None:
    root = {"$defs": {"Room": {"enum": ["single", "double"], "description": "any room"}}}
    shape = shape_of({"$ref": "#/$defs/Room", "description": "the guest's room"}, root)  # type: ignore[arg-type]
    assert shape.options == ("single", "double")
    assert shape.description == "the guest's room"


def test_a_reference_to_itself_ends() -> None:
    root: Any = {"$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert shape_of({"$ref": "#/$defs/A"}, root).kind == "json"


def test_the_schema_of_a_typed_function_gives_fields() -> None:
    class Guest(BaseModel):
        name: str

    schema = create_model(
        "Args",
        nights=(int, ...),
        room=(Literal["single", "double"], "single"),
        note=(str | None, None),
        guest=(Guest, ...),
    ).model_json_schema()
    known = {name: (shape.kind, shape.nullable, required) for name, shape, required in properties_of(schema, 40)}
    assert known == {
        "nights": ("integer", False, True),
        "room": ("choice", False, False),
        "note": ("text", True, False),
        "guest": ("json", False, True),
    }


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"properties": []}, {"type": "object", "properties": {}}])
def test_what_has_no_properties_gives_none(schema: Any) -> None:
    assert properties_of(schema, 40) == []


def test_words_that_are_no_words_are_left_out() -> None:
    assert shape_of({"type": "string", "title": 7, "description": None}, {}) == Shape("text")


def test_an_object_of_too_many_properties_is_not_looked_into() -> None:
    many = {f"p{n}": {"$ref": "#/$defs/all"} for n in range(41)}
    assert properties_of({"properties": many, "$defs": {"all": many}}, 40) == []
