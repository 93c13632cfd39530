"""Counters of a rule for one call: which it reads, what they say, and what the call adds to them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import SaysoError
from sayso.policy.memory.amounts import to_units
from sayso.policy.memory.keys import Above, Budget, Stated
from sayso.policy.memory.readings import Reading, Wanted
from sayso.policy.memory.selecting import find_amount, find_argument, find_value, fold, name_counter
from sayso.policy.provenance.events import PolicyEvent
from sayso.policy.rules import PolicyRule
from sayso.records.memory.charges import Charge, MemoryKey, Remembered
from sayso.text.redaction import MASK


class Recalled(NamedTuple):
    """What the memory of a rule says of a call: whether the rule applies, or why that is unknown.

    `charges` are what the call adds if it is let run.
    """

    applies: bool | str
    remembered: tuple[Remembered, ...]
    charges: tuple[Charge, ...]


class _Part(NamedTuple):
    """One key of a rule for one call; `fault` says why the call's amount is unknown."""

    key: MemoryKey
    wanted: Wanted
    amount: int
    most: int | None
    of: str = ""
    by: tuple[str, ...] = ()
    fault: str = ""
    at_least: int = 0


_Unknown = tuple[MemoryKey, str]
"""A key, and why its counter is unknown."""

Parts = dict[str, tuple[Stated, Sequence[_Part | _Unknown]]]
"""By rule what its keys state, and what they have read of an event."""

_NOTHING = Remembered(rule_id="", key="limit", counter="", per_s=0, total=0, amount=0)
_NO_CHARGE = Charge(counter="", per_s=0)
"""Copies of these need no validation."""


def list_wanted(rule: PolicyRule, event: PolicyEvent) -> Iterator[Wanted]:
    """Yield the counters that a rule reads to judge a call that it covers."""
    for part in _list_parts(rule, event):
        if isinstance(part, _Part):
            yield part.wanted


def recall(rule: PolicyRule, event: PolicyEvent) -> Recalled:
    """Return what the memory of a rule says of a call that it covers."""
    remembered: list[Remembered] = []
    charges: list[Charge] = []
    says: list[tuple[str, bool | str]] = []
    for part in _list_parts(rule, event):
        if not isinstance(part, _Part):
            says.append(part)
            continue
        reading = event.memory.get(part.wanted.counter)
        if reading is None:
            says.append((part.key, f"{part.key}: what it has counted is not known here"))
            continue
        says.append((part.key, _say(part, reading)))
        if part.fault:
            continue
        remembered.append(_note(rule, part, reading))
        charges.append(_charge(part, reading))
    return Recalled(_combine(says), tuple(remembered), tuple(charges))


def hide_amounts(remembered: Iterable[Remembered], masked: JsonObject) -> tuple[Remembered, ...]:
    """Return what rules remembered without amounts that are masked in these arguments of the call."""
    return tuple(
        entry.model_copy(update={"amount": None}) if entry.of and find_argument(masked, entry.of) == MASK else entry
        for entry in remembered
    )


def find_percentile(amounts: list[int], percentile: int) -> int:
    """Return the nearest-rank percentile; 0 without amounts."""
    ordered = sorted(amounts)
    return ordered[ceil(percentile / 100 * len(ordered)) - 1] if ordered else 0


def _combine(says: list[tuple[str, bool | str]]) -> bool | str:
    """All keys must hold, of `limit` and `budget` below `over` one; what is unknown counts only if it matters."""
    over = [value for key, value in says if key.startswith("over.")]
    others = [value for key, value in says if not key.startswith("over.")]
    if over:
        others.append(True if True in over else next((value for value in over if isinstance(value, str)), False))
    if False in others:
        return False
    return next((value for value in others if isinstance(value, str)), True)


def _say(part: _Part, reading: Reading) -> bool | str:
    if part.fault:
        return part.fault
    if part.key == "above":
        if reading.samples < part.at_least:
            return f"above: only {reading.samples} of {part.at_least} earlier amounts are known"
        return part.amount > reading.total
    if part.key == "unseen":
        return reading.total == 0
    fits = part.most is None or reading.total + part.amount <= part.most
    return fits if part.key in ("limit", "budget") else not fits


def _note(rule: PolicyRule, part: _Part, reading: Reading) -> Remembered:
    return _NOTHING.model_copy(
        update={
            "rule_id": rule.rule_id,
            "key": part.key,
            "counter": part.wanted.counter,
            "per_s": part.wanted.per_s,
            "total": reading.total,
            "amount": part.amount,
            "most": part.most,
            "samples": reading.samples,
            "of": part.of,
            "by": part.by,
        }
    )


def _charge(part: _Part, reading: Reading) -> Charge:
    """Return the charge, with a limit if the judgement relies on the call being within it."""
    within = part.most is not None and reading.total + part.amount <= part.most
    return _NO_CHARGE.model_copy(
        update={
            "counter": part.wanted.counter,
            "per_s": part.wanted.per_s,
            "amount": part.amount,
            "most": part.most if within else None,
            "sample": part.wanted.percentile is not None,
        }
    )


def _list_parts(rule: PolicyRule, event: PolicyEvent) -> Sequence[_Part | _Unknown]:
    """Return each key with its counter, or with the reason why its counter is unknown; each event is read once."""
    stated, held = rule.condition.memory, event.parts.get(rule.rule_id)
    if held is None or held[0] is not stated:
        held = event.parts[rule.rule_id] = stated, tuple(_try_part(rule, key, value, event) for key, value in stated)
    return held[1]


def _try_part(rule: PolicyRule, key: MemoryKey, stated: Any, event: PolicyEvent) -> _Part | _Unknown:
    try:
        return _read_part(rule, key, stated, event)
    except SaysoError as error:
        return key, f"{key}: {error.message}"


def _read_part(rule: PolicyRule, key: MemoryKey, stated: Any, event: PolicyEvent) -> _Part:
    if key == "repeats":
        call: JsonObject = {"agent": event.agent, "tool": event.tool_name, "args": event.tool_args}
        wanted = Wanted(name_counter(rule.rule_id, key, stated.within, "", (), [call]), stated.within)
        return _Part(key, wanted, 1, stated.more_than)
    by = [fold(find_value(event, name), name) for name in stated.by]
    if key in ("budget", "over.budget"):
        return _read_budget(rule, key, stated, event, by)
    if key == "above":
        return _read_above(rule, key, stated, event, by)
    if key in ("limit", "over.limit"):
        wanted = Wanted(name_counter(rule.rule_id, key, stated.per, "", stated.by, by), stated.per)
        return _Part(key, wanted, 1, stated.count, by=stated.by)
    value, within = stated.value, stated.within
    wanted = Wanted(name_counter(rule.rule_id, key, within, value, stated.by, [*by, find_value(event, value)]), within)
    return _Part(key, wanted, 1, None, value, stated.by)


def _read_budget(rule: PolicyRule, key: MemoryKey, stated: Budget, event: PolicyEvent, by: list[JsonValue]) -> _Part:
    counter = name_counter(rule.rule_id, key, stated.per, stated.sum, stated.by, by)
    amount, fault = find_amount(event, key, stated.sum)
    return _Part(key, Wanted(counter, stated.per), amount, _read_most(stated.max), stated.sum, stated.by, fault)


def _read_above(rule: PolicyRule, key: MemoryKey, stated: Above, event: PolicyEvent, by: list[JsonValue]) -> _Part:
    counter = name_counter(rule.rule_id, key, stated.within, stated.of, stated.by, by)
    amount, fault = find_amount(event, key, stated.of)
    wanted = Wanted(counter, stated.within, stated.percentile)
    return _Part(key, wanted, amount, None, stated.of, stated.by, fault, stated.at_least)


_read_most = lru_cache(4_096)(to_units)
"""Return the limit of a budget in units; a rulebook has few."""
