"""Validation by jsonschema-rs (`sayso[policies]`): nothing is fetched, and patterns are searched in linear time."""

from collections.abc import Iterator
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.schemas.bounds import describe_misfit, weigh

LISTED = 5
"""The problems listed for one value; the search stops after one more."""


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
    engine = _engine()
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


def _engine() -> Any:
    try:
        return import_module("jsonschema_rs")
    except ImportError as error:
        raise InvalidInput(
            "Schemas need the package jsonschema-rs. Install it with: pip install 'sayso[policies]'"
        ) from error


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema and is not fetched; include its definition")
