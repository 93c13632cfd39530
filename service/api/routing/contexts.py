"""Limits of the context that clients send; rules read it for every call."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject, count_values

MAX_BYTES = 32_768
MAX_VALUES = 1_000


def _check_size(context: JsonObject) -> JsonObject:
    size, values = len(to_json(context)), count_values(context, MAX_VALUES)
    if size > MAX_BYTES:
        raise ValueError(f"the context has {size} bytes; the limit is {MAX_BYTES}")
    if values > MAX_VALUES:
        raise ValueError(f"the context has more than {MAX_VALUES} values")
    return context


Context = Annotated[JsonObject, AfterValidator(_check_size)]
