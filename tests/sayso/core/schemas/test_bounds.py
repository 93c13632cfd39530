"""Limits of schemas, and the cost of evaluating them."""

from typing import Any

import pytest

from sayso.core.schemas.bounds import (
    MAX_ALTERNATIVES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    weigh,
    weigh_pattern,
    without_argument,
)
from sayso.errors import InvalidInput


def doubled(levels: int) -> dict[str, Any]:
    """Return a schema in which each definition refers to the next one twice."""
    defs: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": defs | {f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def nested(depth: int) -> dict[str, Any]:
    return {"items": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"description": "x" * MAX_BYTES}, f"the limit is {MAX_BYTES}"),
        (nested(MAX_DEPTH + 1), f"nested deeper than {MAX_DEPTH} levels"),
        ({"enum": [0] * MAX_VALUES}, f"more than {MAX_VALUES} values"),
        ({"anyOf": [{}] * (MAX_ALTERNATIVES + 1)}, "1001 alternatives; the limit is 1000"),
        ({"items": [{"not": {}}] * 1_001}, "1001 alternatives"),
        ({"items": [{"$ref": "#"}] * 1_001}, "1001 references"),
        ({"items": [{"pattern": "a"}] * 201}, "201 patterns"),
        ({"pattern": "a" * 1_001}, "a pattern of 1001 characters"),
        ({"patternProperties": {"a" * 1_001: {}}}, "a pattern of 1001 characters"),
        (doubled(20), "its references expand to more than 200000 parts"),
    ],
)
def test_weigh_schema_over_a_limit(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        weigh(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.com/schema"},
        {"$dynamicRef": "#node"},
        {"properties": {"a": {}}, "unevaluatedProperties": False},
        {"$id": "https://example.com/a", "items": {"$ref": "#"}},
        {"$schema": "https://example.com/meta"},
        {"contentMediaType": "application/json"},
        {"pattern": "^(?=a)"},
        {"pattern": r"(a)\1"},
        {"patternProperties": {"(?!x)": {}}},
    ],
)
def test_weigh_marks_uncountable_schemas(schema: dict[str, Any]) -> None:
    assert weigh(schema).apart


def test_weigh_counts_expanded_references() -> None:
    once = weigh({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}})
    twice = weigh({"$defs": {"a": {"type": "string"}}, "items": [{"$ref": "#/$defs/a"}] * 2})
    assert not once.apart
    assert twice.parts > once.parts
    assert weigh(doubled(8)).parts > 2**8


def test_alternatives_within_alternatives_are_levels() -> None:
    assert weigh({"type": "object"}).levels == 0
    assert weigh({"anyOf": [{"oneOf": [{"not": {}}]}, {}]}).levels == 3


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        (r"^\d{4}-\d{2}$", 8),
        ("((a{50}){50}){4}", 10_001),
        ("((a{100}){100}){100}", None),
        ("(a|b)*", 3),
        ("[^a]", 11),
        (r"[a-z\-]+", 2),
        (r"\p{L}", None),
        (r"(?i)a", None),
        (r"(?<=a)b", None),
        (r"(a)\1", None),
        ("[a&&b]", None),
        ("a{", None),
        ("(a", None),
        ("a)", None),
    ],
)
def test_weigh_pattern(pattern: str, steps: int | None) -> None:
    assert weigh_pattern(pattern) == steps


def test_without_argument_accepts_any_value() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]}
    assert without_argument(schema, "a") == {"properties": {"a": {}, "b": {}}, "required": ["b"]}
    behind: dict[str, Any] = {"$defs": {"x": schema}, "$ref": "#/$defs/x"}
    assert without_argument(behind, "a")["required"] == ["b"]
    assert without_argument({}, "a") == {}
