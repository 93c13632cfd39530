"""Counters of a rule for one call: which it reads, what they say, and what the call adds to them."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, digest_json
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.memory.amounts import read_amount, to_units
from sayso.policy.memory.keys import Above, Budget
from sayso.records.base import Immutable
from sayso.records.memory.assessments import Assessment, Question
from sayso.records.memory.charges import Charge, MemoryKey, Remembered
from sayso.records.memory.grants import Grant
from sayso.records.memory.mandates import Mandate
from sayso.text.redaction import MASK

if TYPE_CHECKING:
    from sayso.policy.matching import PolicyEvent
    from sayso.policy.rules import PolicyRule, RuleCondition


class Reading(Immutable):
    """What a counter held when a call was judged: its total, or a percentile of `samples` amounts.

    Of grants or mandates it holds those in force, and grants on probation, which let nothing run. `assessment` is
    instead what an assessor said about the call.
    """

    total: int = 0
    samples: int = 0
    grants: tuple[Grant, ...] = ()
    assessment: Assessment | None = None
    mandates: tuple[Mandate, ...] = ()


Readings = Mapping[str, Reading]
"""Readings by counter."""

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


class Wanted(NamedTuple):
    """A counter to read, with the length of its period; with a percentile it holds amounts.

    With `grants`, `counter` names a rule and an agent, and the grants in force are read with their counters. With
    `tool`, it names a conversation, and the mandates in force are read with the counters of this tool's calls.
    With a `question`, an assessor is asked instead.
    """

    counter: str
    per_s: int
    percentile: int | None = None
    grants: bool = False
    question: Question | None = None
    tool: str | None = None


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


def list_wanted(rule: "PolicyRule", event: "PolicyEvent") -> Iterator[Wanted]:
    """Yield the counters that a rule reads to judge a call that it covers."""
    for part in _list_parts(rule, event):
        if isinstance(part, _Part):
            yield part.wanted


def recall(rule: "PolicyRule", event: "PolicyEvent") -> Recalled:
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
        one.model_copy(update={"amount": None}) if one.of and _follow(masked, one.of.split(".")[1:]) == MASK else one
        for one in remembered
    )


def find_percentile(amounts: list[int], percentile: int) -> int:
    """Return the nearest-rank percentile; 0 without amounts."""
    ordered = sorted(amounts)
    return ordered[ceil(percentile / 100 * len(ordered)) - 1] if ordered else 0


def _combine(says: list[tuple[str, bool | str]]) -> bool | str:
    """All keys must hold, of `limit` and `budget` below `over` one; what is unknown counts only if it matters."""
    over = [one for key, one in says if key.startswith("over.")]
    others = [one for key, one in says if not key.startswith("over.")]
    if over:
        others.append(True if True in over else next((one for one in over if isinstance(one, str)), False))
    if False in others:
        return False
    return next((one for one in others if isinstance(one, str)), True)


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


def _note(rule: "PolicyRule", part: _Part, reading: Reading) -> Remembered:
    return Remembered(
        rule_id=rule.rule_id,
        key=part.key,
        counter=part.wanted.counter,
        per_s=part.wanted.per_s,
        total=reading.total,
        amount=part.amount,
        most=part.most,
        samples=reading.samples,
        of=part.of,
        by=part.by,
    )


def _charge(part: _Part, reading: Reading) -> Charge:
    """Return the charge, with a limit if the judgement relies on the call being within it."""
    within = part.most is not None and reading.total + part.amount <= part.most
    return Charge(
        counter=part.wanted.counter,
        per_s=part.wanted.per_s,
        amount=part.amount,
        most=part.most if within else None,
        sample=part.wanted.percentile is not None,
    )


def _list_parts(rule: "PolicyRule", event: "PolicyEvent") -> Iterator[_Part | tuple[MemoryKey, str]]:
    """Yield each key with its counter, or with the reason why its counter is unknown."""
    for key, stated in _list_stated(rule.condition):
        try:
            yield _read_part(rule, key, stated, event)
        except SaysoError as error:
            yield key, f"{key}: {error.message}"


def _list_stated(condition: "RuleCondition") -> Iterator[tuple[MemoryKey, Any]]:
    over = condition.over
    stated: tuple[tuple[MemoryKey, Any], ...] = (
        ("limit", condition.limit),
        ("budget", condition.budget),
        ("over.limit", over.limit if over is not None else None),
        ("over.budget", over.budget if over is not None else None),
        ("unseen", condition.unseen),
        ("above", condition.above),
        ("repeats", condition.repeats),
    )
    return ((key, one) for key, one in stated if one is not None)


def _read_part(rule: "PolicyRule", key: MemoryKey, stated: Any, event: "PolicyEvent") -> _Part:
    if key == "repeats":
        call: JsonObject = {"agent": event.agent, "tool": event.tool_name, "args": event.tool_args}
        wanted = Wanted(_name_counter(rule, key, stated.within, "", (), [call]), stated.within)
        return _Part(key, wanted, 1, stated.more_than)
    by = [_fold(_find(event, name), name) for name in stated.by]
    if key in ("budget", "over.budget"):
        return _read_budget(rule, key, stated, event, by)
    if key == "above":
        return _read_above(rule, key, stated, event, by)
    if key in ("limit", "over.limit"):
        wanted = Wanted(_name_counter(rule, key, stated.per, "", stated.by, by), stated.per)
        return _Part(key, wanted, 1, stated.count, by=stated.by)
    value, within = stated.value, stated.within
    wanted = Wanted(_name_counter(rule, key, within, value, stated.by, [*by, _find(event, value)]), within)
    return _Part(key, wanted, 1, None, value, stated.by)


def _read_budget(
    rule: "PolicyRule", key: MemoryKey, stated: Budget, event: "PolicyEvent", by: list[JsonValue]
) -> _Part:
    counter = _name_counter(rule, key, stated.per, stated.sum, stated.by, by)
    amount, fault = _read_amount(event, key, stated.sum)
    return _Part(key, Wanted(counter, stated.per), amount, to_units(stated.max), stated.sum, stated.by, fault)


def _read_above(rule: "PolicyRule", key: MemoryKey, stated: Above, event: "PolicyEvent", by: list[JsonValue]) -> _Part:
    counter = _name_counter(rule, key, stated.within, stated.of, stated.by, by)
    amount, fault = _read_amount(event, key, stated.of)
    wanted = Wanted(counter, stated.within, stated.percentile)
    return _Part(key, wanted, amount, None, stated.of, stated.by, fault, stated.at_least)


def _name_counter(
    rule: "PolicyRule", key: MemoryKey, per_s: int, of: str, names: tuple[str, ...], by: list[JsonValue]
) -> str:
    """Return a name that hides the values it counts by, which may be secret."""
    return digest_json([rule.rule_id, key, per_s, of, [*names], [*by]])[:32]


def _read_amount(event: "PolicyEvent", key: MemoryKey, path: str) -> tuple[int, str]:
    """Return the amount of a call, and why it is unknown, if so."""
    try:
        return read_amount(_find(event, path), path), ""
    except SaysoError as error:
        return 0, f"{key}: {error.message}"


def _find(event: "PolicyEvent", name: str) -> Any:
    """Return what the call has under a name such as `args.order.total`; raises `InvalidInput` without it."""
    first, *steps = name.split(".")
    field, who = _FIELDS.get(first), event.who
    if field is not None:
        found: Any = getattr(event, field)
    else:
        found = getattr(who, first) if who is not None and first in ("owner", "person") else None
    found = _follow(found, steps)
    if found is None:
        raise InvalidInput(f"{name} is missing")
    return found


def _follow(found: Any, steps: list[str]) -> Any:
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _fold(value: Any, name: str) -> JsonValue:
    """Return a value to count by, so that no other spelling counts apart.

    Capitals, width, blanks and invisible signs of a text make no difference, and a number equals its text. Raises
    `InvalidInput` for a list or an object.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"{name} is neither a text nor a number, so calls cannot be counted by it")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if text.isascii():
        return " ".join(text.casefold().split())
    visible = (sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return " ".join("".join(visible).casefold().split())
