"""Whole fractions become integers exactly where a schema asks for integers alone."""

import json
from typing import Any

import pytest

from sayso.core.canonical_json import digest_json
from sayso.core.schemas.validators import settle_integers

INTEGER = {"type": "integer"}
TREE = {
    "$defs": {"n": {"type": "object", "properties": {"v": INTEGER, "n": {"$ref": "#/$defs/n"}}}},
    "$ref": "#/$defs/n",
}


@pytest.mark.parametrize(
    ("schema", "value", "settled"),
    [
        (INTEGER, 3.0, "3"),
        (INTEGER, -0.5, "-0.5"),
        (INTEGER, 1e20, "100000000000000000000"),
        ({"type": "number"}, 3.0, "3.0"),
        ({}, 3.0, "3.0"),
        ({"type": ["integer", "null"]}, 3.0, "3"),
        ({"type": ["integer", "number"]}, 3.0, "3.0"),
        ({"anyOf": [INTEGER, {"type": "null"}]}, 3.0, "3"),
        ({"anyOf": [INTEGER, {"type": "number"}]}, 3.0, "3.0"),
        ({"items": INTEGER}, [1.0, 2.5, "3.0"], '[1, 2.5, "3.0"]'),
        ({"prefixItems": [INTEGER]}, [1.0, 2.0], "[1, 2.0]"),
        ({"properties": {"a": INTEGER}}, {"a": 1.0, "b": 1.0}, '{"a": 1, "b": 1.0}'),
        ({"additionalProperties": INTEGER}, {"a": 1.0}, '{"a": 1}'),
        (TREE, {"v": 1.0, "n": {"v": 2.0}}, '{"v": 1, "n": {"v": 2}}'),
        ({"allOf": [{"properties": {"a": INTEGER}}]}, {"a": 1.0}, '{"a": 1}'),
        ({"$ref": "#"}, [1.0], "[1.0]"),
    ],
)
def test_settle_integers_of_a_schema(schema: dict[str, Any], value: Any, settled: str) -> None:
    found = settle_integers(schema, value)
    assert json.dumps(found) == settled
    assert digest_json(found) == digest_json(value)


def test_settle_integers_ends_on_a_schema_that_grows() -> None:
    several: Any = {"anyOf": [{"$ref": "#/$defs/a"}] * 3, "properties": {"x": {"$ref": "#/$defs/a"}}}
    value: Any = 1.0
    for _ in range(20):
        value = {"x": value}
    assert settle_integers({"$defs": {"a": several}, "$ref": "#/$defs/a"}, value) == value
