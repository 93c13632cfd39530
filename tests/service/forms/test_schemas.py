from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sayso.core.canonical_json import JsonObject
from service.forms.schemas import Shape, properties_of, shape_of


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
def test_shape_of_chooses_a_control_per_schema(schema: Any, kind: str, nullable: bool) -> None:
    assert kind_of(schema) == (kind, nullable)


def test_shape_of_follows_references_and_keeps_outer_texts() -> None:
    root = {"$defs": {"Room": {"enum": ["single", "double"], "description": "any room"}}}
    shape = shape_of({"$ref": "#/$defs/Room", "description": "the guest's room"}, root)  # type: ignore[arg-type]
    assert shape.options == ("single", "double")
    assert shape.description == "the guest's room"


def test_shape_of_ends_at_a_circular_reference() -> None:
    root: Any = {"$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert shape_of({"$ref": "#/$defs/A"}, root).kind == "json"


def test_properties_of_reads_a_function_schema() -> None:
    class Guest(BaseModel):
        name: str

    class Args(BaseModel):
        nights: int
        room: Literal["single", "double"] = "single"
        note: str | None = None
        guest: Guest

    schema = Args.model_json_schema()
    known = {name: (shape.kind, shape.nullable, required) for name, shape, required in properties_of(schema, 40)}
    assert known == {
        "nights": ("integer", False, True),
        "room": ("choice", False, False),
        "note": ("text", True, False),
        "guest": ("json", False, True),
    }


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"properties": []}, {"type": "object", "properties": {}}])
def test_properties_of_returns_none_without_properties(schema: Any) -> None:
    assert properties_of(schema, 40) == []


def test_shape_of_ignores_invalid_texts() -> None:
    assert shape_of({"type": "string", "title": 7, "description": None}, {}) == Shape("text")


def test_properties_of_returns_none_over_the_limit() -> None:
    many: JsonObject = {f"p{n}": {"$ref": "#/$defs/all"} for n in range(41)}
    assert properties_of({"properties": many, "$defs": {"all": many}}, 40) == []
