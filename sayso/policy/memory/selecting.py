"""What the keys of a rule read of a call: values to count by, amounts, and the names of counters."""

import unicodedata
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, canonical_json
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.memory.amounts import read_amount
from sayso.policy.provenance.events import PolicyEvent
from sayso.records.memory.charges import MemoryKey
from sayso.text.lookalikes import has_stacked_accents

if TYPE_CHECKING:
    from hashlib import _Hash

_FIELDS = {
    "args": "tool_args",
    "context": "context",
    "agent": "agent",
    "tool": "tool_name",
    "run": "run_id",
    "subagent": "subagent_name",
    "key": "key",
}
"""The names by which rules count, and the fields of the event; `owner` and `person` are fields of its `who`."""

_PREPARED = 4_096
"""The limit of cached names; a rulebook has as many as its rules use."""


def name_counter(rule_id: str, key: MemoryKey, per_s: int, of: str, names: tuple[str, ...], by: list[JsonValue]) -> str:
    """Return a name that hides the values it counts by, which may be secret."""
    name = _begin_name(rule_id, key, per_s, of, names).copy()
    name.update(canonical_json([by])[1:])
    return name.hexdigest()[:32]


@lru_cache(_PREPARED)
def _begin_name(rule_id: str, key: MemoryKey, per_s: int, of: str, names: tuple[str, ...]) -> "_Hash":
    """Return the digest of a canonical list up to its last member, which follows."""
    return sha256(canonical_json([rule_id, key, per_s, of, [*names]])[:-1] + b",")


def find_amount(event: PolicyEvent, key: MemoryKey, path: str) -> tuple[int, str]:
    """Return the amount of a call, and why it is unknown, if so."""
    try:
        return read_amount(find_value(event, path), path), ""
    except SaysoError as error:
        return 0, f"{key}: {error.message}"


def find_value(event: PolicyEvent, name: str) -> Any:
    """Return what the call has under a name such as `args.order.total`; raises `InvalidInput` without it."""
    place = _split(name)
    value = _follow(getattr(event.who if place.of_who else event, place.field, None), place.steps)
    if value is None:
        raise InvalidInput(f"{name} is missing")
    return value


def find_argument(args: JsonObject, path: str) -> Any:
    """Return the argument at a path such as `args.order.total`, or None."""
    return _follow(args, _split(path).steps)


def _follow(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def fold(value: Any, name: str) -> JsonValue:
    """Return a value to count by, so that no other spelling counts apart.

    Capitals, width, blanks and invisible signs of a text make no difference, and a number equals its text. Raises
    `InvalidInput` for a list, an object, and a text that takes too long to normalize.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"{name} is neither a text nor a number, so calls cannot be counted by it")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if text.isascii():
        return " ".join(text.casefold().split())
    if has_stacked_accents(text):
        raise InvalidInput(f"{name} has dozens of accents on one letter, so calls cannot be counted by it")
    visible = (sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return " ".join("".join(visible).casefold().split())


class _Place(NamedTuple):
    """Where a name leads: to a field of the event or of its `who`, and to keys below."""

    field: str
    of_who: bool
    steps: tuple[str, ...]


@lru_cache(_PREPARED)
def _split(name: str) -> _Place:
    first, *steps = name.split(".")
    field = _FIELDS.get(first)
    return _Place(field or first, field is None, tuple(steps))
