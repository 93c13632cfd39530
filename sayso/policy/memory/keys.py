"""Frozen models for the keys of a rule that remember calls, as a rules file states them."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from sayso.policy.memory.amounts import MAX_AMOUNT
from sayso.records.base import Immutable
from sayso.records.memory.charges import MemoryKey

MEMORY_KEYS = ("limit", "budget", "over", "unseen", "above", "repeats")
MOST_CALLS = 1_000_000
MOST_SAMPLES = 500
"""The amounts that `above` compares with: the latest ones."""

SHORTEST_S = 10
LONGEST_S = 366 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_NAMES = ("agent", "subagent", "tool", "run", "key", "owner", "person")
_PERIOD = re.compile(r"([1-9][0-9]{0,8})([smhdw])")
_PLACE = re.compile(r"(args|context)(\.[A-Za-z_][A-Za-z0-9_-]{0,99}){1,10}")


def read_period(text: str) -> int:
    """Return a period such as `90d` in seconds; raises `ValueError`."""
    match = _PERIOD.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a period; write a number and s, m, h, d or w, as in 1h or 90d")
    return int(match[1]) * _UNITS[match[2]]


def write_period(seconds: int) -> str:
    """Return seconds as a period in its largest whole unit but weeks, such as `90d`."""
    unit = next(name for name in ("d", "h", "m", "s") if seconds % _UNITS[name] == 0)
    return f"{seconds // _UNITS[unit]}{unit}"


def _read_text(value: Any) -> Any:
    """Return a text as a period in seconds; other values stay as they are."""
    return read_period(value) if isinstance(value, str) else value


def _check_period(seconds: int) -> int:
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueError(f"a period is between {SHORTEST_S}s and {LONGEST_S // 86_400}d")
    return seconds


def _check_path(path: str) -> str:
    if not _PLACE.fullmatch(path) or not path.startswith("args."):
        raise ValueError(f"{path!r} is not an argument; write it as args.amount or args.order.total")
    return path


def _check_place(name: str) -> str:
    if name not in _NAMES and not _PLACE.fullmatch(name):
        known = ", ".join(_NAMES)
        raise ValueError(f"{name!r} cannot be counted by; use {known}, an argument such as args.customer, or context.…")
    return name


def read_names(value: Any) -> Any:
    """Return a list, or one text, as names; other values stay as they are."""
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, str) else value


_PATH = r"(\.[A-Za-z_][A-Za-z0-9_-]{0,99}){1,10}"
_PERIOD_SCHEMA: JsonDict = {
    "anyOf": [
        {"type": "string", "pattern": "^[1-9][0-9]{0,8}[smhdw]$"},
        {"type": "integer", "minimum": SHORTEST_S, "maximum": LONGEST_S},
    ]
}
_NAME_SCHEMA: JsonDict = {"type": "string", "pattern": rf"^({'|'.join(_NAMES)}|(args|context){_PATH})$"}
_NAMES_SCHEMA: JsonDict = {"anyOf": [_NAME_SCHEMA, {"type": "array", "items": _NAME_SCHEMA, "maxItems": 8}]}

Period = Annotated[int, BeforeValidator(_read_text), AfterValidator(_check_period), WithJsonSchema(_PERIOD_SCHEMA)]
ArgumentPath = Annotated[
    str, AfterValidator(_check_path), WithJsonSchema({"type": "string", "pattern": f"^args{_PATH}$"})
]
Names = Annotated[
    tuple[Annotated[str, AfterValidator(_check_place)], ...],
    BeforeValidator(read_names),
    Field(max_length=8),
    WithJsonSchema(_NAMES_SCHEMA),
]
Money = Annotated[Decimal, Field(gt=0, le=MAX_AMOUNT, decimal_places=6)]


class Limit(Immutable):
    """At most `count` calls in every `per`, counted apart for each combination of `by`."""

    count: int = Field(ge=1, le=MOST_CALLS)
    per: Period
    by: Names = ()


class Budget(Immutable):
    """At most `max` as the sum of an argument in every `per`, counted apart for each combination of `by`."""

    sum: ArgumentPath
    max: Money
    per: Period
    by: Names = ()


class Over(Immutable):
    """Calls beyond a limit, a budget, or either of both."""

    limit: Limit | None = None
    budget: Budget | None = None

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.limit is None and self.budget is None:
            raise ValueError("needs `limit`, `budget` or both")
        return self


class Unseen(Immutable):
    """Calls whose `value` no earlier call had `within` the period."""

    value: ArgumentPath
    within: Period
    by: Names = ()


class Above(Immutable):
    """Calls with an amount above the percentile of the earlier ones; it cannot tell below `at_least` of them."""

    of: ArgumentPath
    within: Period
    percentile: int = Field(default=95, ge=50, le=99)
    at_least: int = Field(default=20, ge=5, le=MOST_SAMPLES)
    by: Names = ()


class Repeats(Immutable):
    """Calls that equal `more_than` earlier ones of the agent `within` the period, or more."""

    within: Period
    more_than: int = Field(default=1, ge=1, le=1_000)


Stated = Sequence[tuple[MemoryKey, Any]]
"""The keys of a rule, with what each states."""


def list_stated(fields: Mapping[str, Any]) -> Stated:
    """Return the keys among the fields of a condition, those below `over` apart."""
    over: Over | None = fields["over"]
    keys: tuple[tuple[MemoryKey, Any], ...] = (
        ("limit", fields["limit"]),
        ("budget", fields["budget"]),
        ("over.limit", over.limit if over is not None else None),
        ("over.budget", over.budget if over is not None else None),
        ("unseen", fields["unseen"]),
        ("above", fields["above"]),
        ("repeats", fields["repeats"]),
    )
    return tuple((key, stated) for key, stated in keys if stated is not None)


def check_memory(keys: Stated, *, allows: bool, models: bool) -> None:
    """Refuse keys that have no clear meaning in a rule."""
    stated = {key.partition(".")[0] for key, _ in keys}
    if stated and models:
        raise ValueError("model calls are not remembered; write `subjects: [tool_call]`, or remove this key")
    plain, scrutiny = sorted(stated & {"limit", "budget"}), sorted(stated - {"limit", "budget"})
    if allows and scrutiny:
        raise ValueError(
            f"`{scrutiny[0]}` is for rules that ask or deny; an allow rule takes `limit` or `budget`, "
            "and allows while a call fits within them"
        )
    if plain and not allows:
        raise ValueError(
            f"write `{plain[0]}` below `over:` here; a rule that asks or denies applies once calls are over it. "
            "Only an allow rule takes it alone, and allows while a call fits within it"
        )
