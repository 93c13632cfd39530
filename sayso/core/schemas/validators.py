"""Validation by jsonschema-rs (`sayso[policies]`): nothing is fetched, and patterns are searched in linear time.

JSON Schema takes `3.0` for an integer, and the tool behind it expects `3`, so such values are changed.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject
from sayso.core.packages import install_command
from sayso.core.schemas.bounds import describe_misfit, resolve, weigh
from sayso.errors import InvalidInput

LISTED = 5  # the problems listed for one value; the search stops after one more


def check_schema(schema: JsonObject) -> None:
    """Raise `InvalidInput` when `schema` is not a usable JSON Schema."""
    weigh(schema)
    compile_schema(to_json(schema))


def check_value(schema: JsonObject, value: JsonValue, name: str) -> None:
    """Raise `InvalidInput` with each problem of `value`. The schema must be trusted: it is evaluated here."""
    refuse(list_problems(schema, value, name, formats=True))


def list_problems(schema: JsonObject, value: JsonValue, name: str, *, formats: bool) -> list[str]:
    """Return the problems of the value with their places; evaluates any schema."""
    misfits = islice(find_misfits(schema, value, formats=formats), LISTED + 1)
    return [f"{name}{_write_place(place)}: {problem}" for place, problem in misfits]


def refuse(problems: list[str]) -> None:
    """Raise `InvalidInput` with the problems, if there are any."""
    if problems:
        more = "; and more" if len(problems) > LISTED else ""
        shown = "; ".join(problems[:LISTED])
        raise InvalidInput(
            f"The value is invalid: {shown}{more}. Correct it and send it again.", problems=problems[:LISTED]
        )


def find_misfits(schema: JsonObject, value: JsonValue, *, formats: bool = False) -> Iterator[tuple[list[Any], str]]:
    """Yield the place and problem of each part of `value` that does not fit; raises as `compile_schema` does."""
    validator = compile_schema(to_json(schema), formats)
    if validator.is_valid(value):
        return
    for error in validator.iter_errors(value):
        yield list(error.instance_path), describe_misfit(error)


@lru_cache(maxsize=256)
def compile_schema(schema: bytes, formats: bool = False) -> Any:
    """Return the validator, linear but for lookarounds and backreferences; raises `InvalidInput` if there is none."""
    try:
        engine: Any = import_module("jsonschema_rs")
    except ImportError as error:
        command = install_command("policies")
        raise InvalidInput(f"Schemas need the package jsonschema-rs: {command}") from error
    compile_ = partial(engine.validator_for, schema.decode(), validate_formats=formats, retriever=_refuse)
    faults = (ValueError, engine.ReferencingError)
    try:
        return compile_(pattern_options=engine.RegexOptions())
    except faults:
        try:
            return compile_()
        except faults as error:
            first = str(error).splitlines()[0]
            message = f"The schema cannot be used: {first}. Ask the agent's developer to correct it."
            raise InvalidInput(message, problems=[first]) from error


def _write_place(place: list[Any]) -> str:
    return "".join(f".{part[:80]}" if isinstance(part, str) else f"[{part}]" for part in place)


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema and is not fetched; include its definition")


_DEEPEST = 100  # of parts and values inside of each other; references may lead in circles


def settle_integers(schema: JsonObject, value: JsonValue) -> JsonValue:
    """Return the value with whole fractions as integers where the schema asks for them, if that is cheap."""
    return _Settling(schema).settle(schema, value) if has_whole_fraction(value) else value


def settle_object(schema: JsonObject, value: JsonObject) -> JsonObject:
    """Do the same for an object."""
    settled = settle_integers(schema, value)
    return settled if isinstance(settled, dict) else value


def has_whole_fraction(value: JsonValue) -> bool:
    """Return whether the value holds a fraction without decimals."""
    level: list[Any] = [value]
    while level:
        if any(isinstance(node, float) and node.is_integer() for node in level):
            return True
        inside = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        level = [child for children in inside for child in children]
    return False


class _Settling:
    """One pass over a value, with the schema that its references point into."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = 20_000

    def settle(self, schema: Any, value: JsonValue, depth: int = 0) -> JsonValue:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST or not isinstance(schema, dict):
            return value
        if isinstance(value, float):
            wanted = value.is_integer() and self._kinds(schema) == {"integer"}
            return int(Decimal(repr(value))) if wanted else value
        for part in self._parts(schema):
            value = self.settle(part, value, depth + 1)
        if isinstance(value, dict):
            return {key: self.settle(_find_property(schema, key), child, depth + 1) for key, child in value.items()}
        if isinstance(value, list):
            return [self.settle(_find_item(schema, index), child, depth + 1) for index, child in enumerate(value)]
        return value

    def _parts(self, schema: JsonObject) -> Iterator[Any]:
        ref = schema.get("$ref")
        if isinstance(ref, str):
            yield resolve(ref, self._root)
        for name in ("allOf", "anyOf", "oneOf"):
            listed = schema.get(name)
            if isinstance(listed, list):
                yield from listed

    def _kinds(self, schema: JsonObject, depth: int = 0) -> set[str]:
        """Return which of integer and number the schema takes."""
        self._left -= 1
        kind = schema.get("type")
        kinds = {kind} if isinstance(kind, str) else {str(name) for name in kind} if isinstance(kind, list) else set()
        if depth < 8 and self._left > 0:
            for part in self._parts(schema):
                kinds |= self._kinds(part, depth + 1) if isinstance(part, dict) else set()
        return kinds & {"integer", "number"}


def _find_property(schema: JsonObject, key: str) -> Any:
    properties = schema.get("properties")
    if isinstance(properties, dict) and key in properties:
        return properties[key]
    return schema.get("additionalProperties")


def _find_item(schema: JsonObject, index: int) -> Any:
    listed = schema.get("prefixItems")
    if isinstance(listed, list) and index < len(listed):
        return listed[index]
    return schema.get("items")
