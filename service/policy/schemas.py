"""Check edited arguments and given values against JSON schemas that came from outside, without trusting the schemas.

What is here evaluates at once, in this process. `service.policy.evaluations` decides what may be.
"""

from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from sayso.canonical_json import JsonObject, count_values
from sayso.errors import InvalidInput
from sayso.records.items import ItemDraft
from sayso.runner.fallbacks import is_offered
from sayso.schemas.bounds import Weight, check_size, weigh
from sayso.schemas.validators import compile_schema, list_problems, refuse
from service.policy.sandbox import Sandbox

SMALL_BYTES = 16_384
"""A larger schema is weighed and evaluated in a process of its own."""

PAIRS = 100_000
"""Parts of a schema times parts of a value: each pair takes at most about 100 ns, so that these take 10 ms."""

LISTED_PAIRS = 3_000
"""The same where the value does not fit, times the nesting of alternatives: a problem is told in some microseconds."""

PATTERN_STEPS = 2_000_000
"""Steps of a schema's patterns times bytes of a value: at most some milliseconds of linear search."""

_SMALL_VALUES = 1_500
"""A schema of so many values is compiled in some milliseconds."""

_FORMATS = frozenset(("date", "date-time", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"))
"""Formats that are checked in one pass over the text."""

SANDBOX = Sandbox(places=2, limit_s=2.0)
"""Where the schemas are evaluated whose cost nobody knows."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is to be checked: a value against a schema; `name` is what to call the value.

    A `format` such as `date` counts where it is asked for: among the arguments of tools it is mostly only a hint.
    """

    schema: JsonObject
    value: JsonValue
    name: str
    formats: bool = False

    def check_here(self) -> bool:
        """Check the value at once where that is cheap for certain; returns False where nobody can know.

        Raises `InvalidInput` for a value that does not fit, and for a schema over its bounds.
        """
        raw = to_json(self.schema)
        weight = _weigh(raw) if len(raw) <= SMALL_BYTES else None
        if weight is None:
            check_size(self.schema)
            return False
        if weight.apart or weight.values > _SMALL_VALUES or (self.formats and not weight.formats <= _FORMATS):
            return False
        pairs = weight.parts * count_values(self.value, PAIRS)
        if pairs > PAIRS or (weight.pattern and weight.pattern * len(to_json(self.value)) > PATTERN_STEPS):
            return False
        if compile_schema(raw, self.formats).is_valid(self.value):
            return True
        if pairs * (1 + weight.levels) > LISTED_PAIRS:
            return False
        refuse(find_problems(self))
        return True

    def job(self) -> JsonObject:
        """Return the same as a job for the sandbox."""
        return {
            "kind": "fit",
            "schema": self.schema,
            "value": self.value,
            "name": self.name,
            "formats": self.formats,
        }


def check_value(schema: JsonObject, value: JsonValue, name: str, *, formats: bool = False) -> None:
    """Raise `InvalidInput`, naming each place, when `value` does not fit `schema`; blocks until that is known."""
    fit = Fit(schema, value, name, formats)
    if not fit.check_here():
        refuse(SANDBOX.run(fit.job())["problems"])


def find_problems(fit: Fit) -> list[str]:
    """Return what keeps the value from fitting, each problem with its place; evaluates whatever the schema says."""
    return list_problems(fit.schema, fit.value, fit.name, formats=fit.formats)


def is_answer(ask: ItemDraft, value: JsonValue) -> bool:
    """Whether a reviewer could have given this value: it is one of the choices, and fits the schema."""
    try:
        check_value(ask.response_schema or {}, value, "value", formats=True)
    except InvalidInput:
        return False
    return is_offered(ask, value)


@lru_cache(maxsize=1024)
def _weigh(schema: bytes) -> Weight:
    return weigh(from_json(schema))
