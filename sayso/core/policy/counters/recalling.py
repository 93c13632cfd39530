"""Counters of rules for one call: what they read of it, what they say, and what the call adds to them."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.policy.counters.readings import Reading, Wanted, read_amount, to_units
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rule_keys import Stated
from sayso.core.policy.rules import Action, PolicyRule
from sayso.core.records.judgements import Charge, CounterKey, Remembered
from sayso.core.text.lookalikes import has_stacked_accents
from sayso.core.text.redaction import MASK
from sayso.errors import InvalidInput, SaysoError

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

_PREPARED = 4_096  # the limit of cached names; a rulebook has as many as its rules use


def name_counter(
    rule_id: str, key: CounterKey, per_s: int, of: str, names: tuple[str, ...], by: list[JsonValue]
) -> str:
    """Return a name that hides the values it counts by, which may be secret."""
    name = _begin_name(rule_id, key, per_s, of, names).copy()
    name.update(canonical_json([by])[1:])
    return name.hexdigest()[:32]


@lru_cache(_PREPARED)
def _begin_name(rule_id: str, key: CounterKey, per_s: int, of: str, names: tuple[str, ...]) -> "_Hash":
    """Return the digest of a canonical list up to its last member, which follows."""
    return sha256(canonical_json([rule_id, key, per_s, of, [*names]])[:-1] + b",")


def find_amount(event: PolicyEvent, key: CounterKey, path: str) -> tuple[int, str]:
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


class Recalled(NamedTuple):
    """What the counters of a rule say of a call: whether the rule applies, or why that is unknown.

    `charges` are what the call adds if it is let run.
    """

    applies: bool | str
    remembered: tuple[Remembered, ...]
    charges: tuple[Charge, ...]


class _Part(NamedTuple):
    """One key of a rule for one call; `fault` says why the call's amount is unknown."""

    key: CounterKey
    wanted: Wanted
    amount: int
    most: int | None
    of: str = ""
    by: tuple[str, ...] = ()
    fault: str = ""
    at_least: int = 0


_Unknown = tuple[CounterKey, str]  # a key, and why its counter is unknown
Parts = dict[str, tuple[Stated, Sequence[_Part | _Unknown]]]
"""By rule what its keys state, and what they have read of an event."""

_NOTHING = Remembered(rule_id="", key="limit", counter="", per_s=0, total=0, amount=0)
_NO_CHARGE = Charge(counter="", per_s=0)  # copies of these need no validation


def list_wanted(rule: PolicyRule, event: PolicyEvent) -> Iterator[Wanted]:
    """Yield the counters that a rule reads to judge a call that it covers."""
    for part in _list_parts(rule, event):
        if isinstance(part, _Part):
            yield part.wanted


def recall(rule: PolicyRule, event: PolicyEvent) -> Recalled:
    """Return what the counters of a rule say of a call that it covers."""
    remembered: list[Remembered] = []
    charges: list[Charge] = []
    says: list[tuple[str, bool | str]] = []
    for part in _list_parts(rule, event):
        if not isinstance(part, _Part):
            says.append(part)
            continue
        reading = event.readings.get(part.wanted.counter)
        if reading is None:
            says.append((part.key, f"{part.key}: what it has counted is not known here"))
            continue
        says.append((part.key, _say(part, reading)))
        if part.fault:
            continue
        counter, per_s = part.wanted.counter, part.wanted.per_s
        note = {"rule_id": rule.rule_id, "key": part.key, "counter": counter, "per_s": per_s, "total": reading.total}
        note |= {"amount": part.amount, "most": part.most, "samples": reading.samples, "of": part.of, "by": part.by}
        remembered.append(_NOTHING.model_copy(update=note))
        # With a limit if the judgement relies on the call being within it.
        within = part.most is not None and reading.total + part.amount <= part.most
        charge = {"counter": counter, "per_s": per_s, "amount": part.amount, "most": part.most if within else None}
        charge["sample"] = part.wanted.percentile is not None
        charges.append(_NO_CHARGE.model_copy(update=charge))
    return Recalled(_combine(says), tuple(remembered), tuple(charges))


def hide_amounts(remembered: Iterable[Remembered], masked: JsonObject) -> tuple[Remembered, ...]:
    """Return what rules remembered without amounts that are masked in these arguments of the call."""
    return tuple(
        entry.model_copy(update={"amount": None}) if _follow(masked, _split(entry.of).steps) == MASK else entry
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


def _list_parts(rule: PolicyRule, event: PolicyEvent) -> Sequence[_Part | _Unknown]:
    """Return each key with its counter, or with the reason why its counter is unknown; each event is read once."""
    stated, held = rule.condition.counters, event.parts.get(rule.rule_id)
    if held is None or held[0] is not stated:
        parts: list[_Part | _Unknown] = []
        for key, value in stated:
            try:
                parts.append(_read_part(rule, key, value, event))
            except SaysoError as error:
                parts.append((key, f"{key}: {error.message}"))
        held = event.parts[rule.rule_id] = stated, parts
    return held[1]


def _read_part(rule: PolicyRule, key: CounterKey, stated: Any, event: PolicyEvent) -> _Part:
    if key == "repeats":
        call: JsonObject = {"agent": event.agent, "tool": event.tool_name, "args": event.tool_args}
        wanted = Wanted(name_counter(rule.rule_id, key, stated.within, "", (), [call]), stated.within)
        return _Part(key, wanted, 1, stated.more_than)
    by = [fold(find_value(event, name), name) for name in stated.by]
    if key in ("budget", "over.budget"):
        counter = name_counter(rule.rule_id, key, stated.per, stated.sum, stated.by, by)
        amount, fault = find_amount(event, key, stated.sum)
        return _Part(key, Wanted(counter, stated.per), amount, _read_most(stated.max), stated.sum, stated.by, fault)
    if key == "above":
        counter = name_counter(rule.rule_id, key, stated.within, stated.of, stated.by, by)
        amount, fault = find_amount(event, key, stated.of)
        wanted = Wanted(counter, stated.within, stated.percentile)
        return _Part(key, wanted, amount, None, stated.of, stated.by, fault, stated.at_least)
    if key in ("limit", "over.limit"):
        wanted = Wanted(name_counter(rule.rule_id, key, stated.per, "", stated.by, by), stated.per)
        return _Part(key, wanted, 1, stated.count, by=stated.by)
    value, within = stated.value, stated.within
    wanted = Wanted(name_counter(rule.rule_id, key, within, value, stated.by, [*by, find_value(event, value)]), within)
    return _Part(key, wanted, 1, None, value, stated.by)


_read_most = lru_cache(4_096)(to_units)
"""Return the limit of a budget in units; a rulebook has few."""


def weigh_counters(
    rules: Sequence[PolicyRule], recalled: Mapping[str, Recalled], deciding: PolicyRule | None, reason: str
) -> dict[str, Any]:
    """Return what the counters of the rules said, the charges, and the reason with limits that are reached.

    `rules` are in the order of trial. Limits of charges count up to the rule that decides.
    """
    charges: list[Charge] = []
    allowance: tuple[Charge, ...] = ()
    remembered: list[Remembered] = []
    limited, reached = True, list[str]()
    for rule in rules:
        entry = recalled.get(rule.rule_id)
        if entry is not None:
            remembered += entry.remembered
        if entry is not None and rule.action is Action.ALLOW:
            allowance = entry.charges if rule is deciding else allowance
            reached += [rule.rule_id] if limited and entry.applies is False else []
        elif entry is not None:
            charges += entry.charges if limited else map(_unlimit, entry.charges)
        limited = limited and rule is not deciding
    if reached:
        names = ", ".join(reached)
        reason = f"{reason} What {f'rule {names} allows' if len(reached) == 1 else f'rules {names} allow'} is used up."
    fields = {"remembered": tuple(remembered), "charges": tuple(charges), "allowance": allowance}
    return fields | {"reason": reason}


def list_shadow_charges(
    shadows: Iterable[tuple[PolicyRule, Action | None]], recalled: Mapping[str, Recalled]
) -> Iterator[Charge]:
    """Yield what a call adds to counters of shadow rules; a rule that allows counts what it would have allowed."""
    for rule, action in shadows:
        entry = recalled.get(rule.rule_id)
        if entry is not None and (action is Action.ALLOW or rule.action is not Action.ALLOW):
            yield from map(_unlimit, entry.charges)


def _unlimit(charge: Charge) -> Charge:
    return charge.model_copy(update={"most": None})
