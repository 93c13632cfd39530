"""Check values against untrusted JSON schemas: cheap checks in this process, others in the sandbox."""

from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from sayso.core.canonical_json import JsonObject, count_values
from sayso.core.records.items import ItemDraft
from sayso.core.schemas.bounds import Weight, check_size, weigh
from sayso.core.schemas.validators import compile_schema, list_problems, refuse
from sayso.errors import InvalidInput
from sayso.runner.fallbacks import is_offered
from service.core.policy.sandbox import Sandbox

SMALL_BYTES = 16_384  # a larger schema is evaluated in the sandbox
PAIRS = 100_000  # limit of schema parts times value parts: at about 100 ns each, 10 ms

LISTED_PAIRS = 3_000  # the same for a misfit, times the nesting of alternatives: each problem takes microseconds

PATTERN_STEPS = 2_000_000  # limit of pattern steps times value bytes: some milliseconds of linear search
_SMALL_VALUES = 1_500  # a schema up to this size compiles in some milliseconds

# Formats whose check is linear in the text.
_FORMATS = frozenset(("date", "date-time", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"))

SANDBOX = Sandbox(places=2, limit_s=2.0)  # evaluates schemas of unknown cost


@dataclass(frozen=True, slots=True)
class Fit:
    """A value, its schema and its name in messages. `formats` checks formats such as `date`."""

    schema: JsonObject
    value: JsonValue
    name: str
    formats: bool = False

    def check_here(self) -> bool:
        """Check the value if cheap, else return False; raises `InvalidInput` for a misfit or too large a schema."""
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
        return {"kind": "fit", "schema": self.schema, "value": self.value, "name": self.name, "formats": self.formats}


def check_value(schema: JsonObject, value: JsonValue, name: str, *, formats: bool = False) -> None:
    """Raise `InvalidInput`, naming each place, when `value` does not fit `schema`; blocking."""
    fit = Fit(schema, value, name, formats)
    if not fit.check_here():
        refuse(SANDBOX.run(fit.job())["problems"])


def find_problems(fit: Fit) -> list[str]:
    """Return each problem of the value with its place, at any cost."""
    return list_problems(fit.schema, fit.value, fit.name, formats=fit.formats)


def is_answer(ask: ItemDraft, value: JsonValue) -> bool:
    """Return whether the value is one of the choices and fits the schema."""
    try:
        check_value(ask.response_schema or {}, value, "value", formats=True)
    except InvalidInput:
        return False
    return is_offered(ask, value)


@lru_cache(maxsize=1024)
def _weigh(schema: bytes) -> Weight:
    return weigh(from_json(schema))
