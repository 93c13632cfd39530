"""What rules want to know of the counters, under which names these are kept, and what was read.

Amounts are whole numbers of millionths, so that no sum of money drifts.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

from sayso.core.canonical_json import digest_json
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.judgements import Assessment, Question
from sayso.core.records.permissions import Grant, Mandate
from sayso.core.text.numbers import write_number
from sayso.errors import InvalidInput


class Reading(Immutable):
    """What a counter held when a call was judged: its total, or a percentile of `samples` amounts.

    Of grants or mandates it holds those in force, and grants on probation, which let nothing run. `assessment` is
    instead what an assessor said about the call, and `denials` what people have denied.
    """

    total: int = 0
    samples: int = 0
    grants: tuple[Grant, ...] = ()
    assessment: Assessment | None = None
    mandates: tuple[Mandate, ...] = ()
    denials: tuple[EarlierDenial, ...] = ()


Readings = Mapping[str, Reading]  # readings by counter


class Wanted(NamedTuple):
    """A counter to read, with the length of its period; with a percentile it holds amounts.

    With `grants`, `counter` names a rule and an agent, and the grants in force are read with their counters. With
    `tool`, it names a conversation, and the mandates in force are read with the counters of this tool's calls.
    With a `question`, an assessor is asked instead. With `denials`, it names a call, and its denials are read.
    """

    counter: str
    per_s: int
    percentile: int | None = None
    grants: bool = False
    question: Question | None = None
    tool: str | None = None
    denials: bool = False


def is_counter(wanted: Wanted) -> bool:
    """Return whether it names one counter, rather than grants, mandates, denials or an assessor's question."""
    return not (wanted.grants or wanted.denials) and wanted.tool is None and wanted.question is None


UNIT = 1_000_000  # the units of 1
MAX_AMOUNT = 9_000_000_000  # the largest amount that is counted; sums stay exact in the store
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,30})?")


def read_amount(value: Any, name: str) -> int:
    """Return a number, or a text such as "19.90", in units, rounded up; raises `InvalidInput` for all others."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInput(f"{name} is not a number")
    if isinstance(value, int):
        if abs(value) > MAX_AMOUNT:  # Python refuses to write very long integers
            raise InvalidInput(f"{name} is not between 0 and {MAX_AMOUNT:,}")
        return _check_range(value * UNIT, name)
    text = value if isinstance(value, str) else format(Decimal(repr(value)), "f")
    if not _DECIMAL.fullmatch(text):
        raise InvalidInput(f"{name} is not a plain number such as 19.90")
    number = Decimal(text)
    if number < 0:  # however small: rounded up to a unit it would be 0
        raise InvalidInput(f"{name} is negative")
    return _check_range(to_units(number), name)


def to_units(number: Decimal) -> int:
    """Return a number in units; a smaller fraction is rounded up."""
    return int((number * UNIT).to_integral_value(ROUND_CEILING))


def write_amount(units: int) -> str:
    """Return units as a number, such as `1,000` or `19.90`."""
    number = Decimal(units) / UNIT
    if number == number.to_integral_value():
        return write_number(int(number))
    return write_number(number, 2) if number == round(number, 2) else write_number(number.normalize())


def _check_range(units: int, name: str) -> int:
    if units < 0:
        raise InvalidInput(f"{name} is negative")
    if units > MAX_AMOUNT * UNIT:
        raise InvalidInput(f"{name} is not between 0 and {MAX_AMOUNT:,}")
    return units


def name_scope(rule_id: str, agent: str) -> str:
    """Return the name under which the grants of a rule for an agent are kept."""
    return digest_json([rule_id, agent])[:32]


def list_counters(grant: Grant) -> Iterator[Wanted]:
    """Yield the counters of a grant."""
    yield Wanted(grant.count_counter, grant.per_s)
    if grant.sum is not None:
        yield Wanted(grant.sum_counter, grant.per_s)


def name_mandate_scope(owner: str, agent: str, thread_id: str) -> str:
    """Return the name under which the mandates of an agent in a conversation of its owner are kept."""
    return digest_json(["mandates", owner, agent, thread_id])[:32]


def name_scope_of(mandate: Mandate) -> str:
    """Return the name under which a mandate is kept."""
    return name_mandate_scope(mandate.owner, mandate.agent, mandate.thread_id)


def list_mandate_counters(mandate: Mandate, tool: str | None = None) -> Iterator[Wanted]:
    """Yield the counters of a mandate: those of all its calls, and those of one tool."""
    yield Wanted(mandate.count_counter, mandate.per_s)
    if mandate.envelope.sum is not None:
        yield Wanted(mandate.sum_counter, mandate.per_s)
    for part in mandate.envelope.tools:
        if part.tool != tool:
            continue
        if part.count is not None:
            yield Wanted(mandate.name_counter(part, "count"), mandate.per_s)
        if part.sum is not None and part.sum.max is not None:
            yield Wanted(mandate.name_counter(part, "sum"), mandate.per_s)
