"""Check edited arguments and given values against JSON schemas that came from outside, without trusting the schemas."""

from functools import lru_cache
from typing import Any

import jsonschema_rs
from pydantic import JsonValue
from pydantic_core import to_json

from sayso.answers import is_offered
from sayso.errors import InvalidInput
from sayso.requests import Ask

_LISTED = 5


def check_schema(schema: dict[str, JsonValue]) -> None:
    """Raise `InvalidInput` when `schema` is not a JSON Schema that can be used; nothing is ever fetched for it."""
    _validator(schema)


def check_value(schema: dict[str, JsonValue], value: JsonValue, name: str, *, formats: bool = False) -> None:
    """Raise `InvalidInput`, naming each place, when `value` does not fit `schema`; `name` is what to call the value.

    A `format` such as `date` counts where it is asked for: among the arguments of tools it is mostly only a hint.
    """
    problems = [
        f"{name}{''.join(f'.{part}' if isinstance(part, str) else f'[{part}]' for part in error.instance_path)}: "
        f"{error.message}"
        for error in _validator(schema, formats=formats).iter_errors(value)
    ]
    if problems:
        shown = "; ".join(problems[:_LISTED])
        more = f" (and {len(problems) - _LISTED} more)" if len(problems) > _LISTED else ""
        raise InvalidInput(f"That does not fit: {shown}{more}. Correct it and send it again.", problems=problems)


def is_answer(ask: Ask, value: JsonValue) -> bool:
    """Whether a reviewer could have given this value: it is one of the choices, and fits the schema."""
    try:
        check_value(ask.response_schema or {}, value, "value", formats=True)
    except InvalidInput:
        return False
    return is_offered(ask, value)


def _validator(schema: dict[str, JsonValue], *, formats: bool = False) -> Any:
    return _compile(to_json(schema), formats)


@lru_cache(maxsize=1024)
def _compile(schema: bytes, formats: bool) -> Any:
    try:
        return jsonschema_rs.validator_for(schema.decode(), validate_formats=formats, retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        first = str(error).splitlines()[0]
        words = f"The schema cannot be used: {first}. Ask the agent's developer to correct it."
        raise InvalidInput(words, problems=[first]) from error


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} would have to be fetched; a schema must be complete in itself")
