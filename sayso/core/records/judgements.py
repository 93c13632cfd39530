"""Frozen models for judging a call: charges to counters, an assessor's words, the share to be drawn, and vetoes."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable, is_empty

SLOTS = 60  # the number of time slots of a period. A charge counts for its period and at most two slots longer.
MAX_TOTAL = 2**61  # the limit of every counter, so that no sum overflows
CounterKey = Literal["limit", "budget", "over.limit", "over.budget", "unseen", "above", "repeats"]
"""The keys of a rule that remember calls, as a rules file names them."""


class Charge(Immutable):
    """What a call adds to one counter: 1, or an amount in millionths.

    `most` is the total that the counter may reach; None sets no limit. `sample` keeps the amount itself. `slot` is 0
    until a transition has placed the charge in time.
    """

    counter: str
    per_s: int
    amount: int = 1
    most: int | None = None
    sample: bool = False
    slot: int = 0


class Remembered(Immutable):
    """What one key of a rule remembered about a call, in calls or in millionths of an amount.

    `total` is what counted before the call; for `above` it is the percentile of the earlier amounts, of which there
    are `samples`. `amount` is the call's own, None where it is secret, and `most` the limit.
    """

    rule_id: str
    key: CounterKey
    counter: str
    per_s: int
    total: int
    amount: int | None
    most: int | None = None
    samples: int = 0
    of: str = ""
    by: tuple[str, ...] = ()

    def describe(self) -> JsonObject:
        """Return the fields that are not the default, as JSON: what a dump does, for the path of every call."""
        fields: JsonObject = {name: value for name, value in vars(self).items() if value != _DEFAULTS[name]}
        return fields | {"by": [*self.by]} if self.by else fields


_DEFAULTS = {name: field.default for name, field in Remembered.model_fields.items()}


class Window(NamedTuple):
    """How a counter counts a period: by slots of this length, the current one and so many before, kept so long."""

    slot_ms: int
    back: int
    kept_ms: int


@lru_cache(1_024)
def find_window(per_s: int) -> Window:
    """Return the window of a period."""
    return Window(slot_ms(per_s), -first_slot(per_s, 0), per_s * 1000 + 3 * slot_ms(per_s))


def slot_ms(per_s: int) -> int:
    """Return the length of a slot."""
    return max(1, per_s * 1000 // SLOTS)


def find_slot(per_s: int, at_ms: int) -> int:
    """Return the slot of a moment."""
    return at_ms // slot_ms(per_s)


def first_slot(per_s: int, slot: int) -> int:
    """Return the first slot that counts for a period in `slot`; a charge may be saved one slot later than its own."""
    return slot - -(-per_s * 1000 // slot_ms(per_s)) - 1


def place_charges(charges: Iterable[Charge], now_ms: int) -> tuple[Charge, ...]:
    """Return the charges, those without a slot placed at `now_ms`."""
    return tuple(
        charge if charge.slot else charge.model_copy(update={"slot": find_slot(charge.per_s, now_ms)})
        for charge in charges
    )


class Level(StrEnum):
    """How risky an assessor takes a call to be."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


LEVELS = tuple(Level)  # the levels, the lowest first


class Assessment(Immutable):
    """What an assessor said about one call. It can add scrutiny, and never decides.

    `key` names the assessor and the call. `fault` is why there is no usable answer; the call then counts as high.
    """

    key: str
    assessor: str
    level: Level
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str = ""
    fault: str = ""


class Question(NamedTuple):
    """What an assessor is asked: its name, and the call as canonical JSON."""

    key: str
    assessor: str
    body: bytes


def assess_unanswered(question: Question, fault: str) -> Assessment:
    """Return the assessment of a call for which the assessor gave no usable answer."""
    return Assessment(key=question.key, assessor=question.assessor, level=Level.HIGH, fault=fault)


class Sample(Immutable):
    """The shares of calls that are drawn by chance for another person.

    An item drawn `before` needs one more approval than its quorum. A call drawn `after` it was allowed or decided gets
    a second look, which holds nothing.
    """

    before: float | None = Field(default=None, gt=0, le=1)
    after: float | None = Field(default=None, gt=0, le=1, exclude_if=is_empty)

    @model_validator(mode="after")
    def _check_stated(self) -> Self:
        if self.before is None and self.after is None:
            raise ValueError("sample needs a share; write before: or after:, such as sample: {after: 0.05}")
        return self


LONGEST_VETO_S = 7 * 86_400
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_WRITTEN = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_PATTERN = "^([1-9][0-9]{0,5}s|[1-9][0-9]{0,4}m|[1-9][0-9]{0,2}h|[1-7]d)$"


def read_veto_s(veto: str) -> int:
    """Return the seconds of a veto such as `10m`; raises `ValueError` for another text."""
    written = _WRITTEN.fullmatch(veto)
    seconds = int(written[1]) * _UNITS_S[written[2]] if written is not None else 0
    if not 1 <= seconds <= LONGEST_VETO_S:
        raise ValueError("a veto is a number with s, m, h or d, from 1s to 7d, such as 10m")
    return seconds


def _check_veto(veto: str) -> str:
    read_veto_s(veto)
    return veto


def drop_veto(_vetoes: Iterable[str | None]) -> None:
    """Return no veto: what people are asked about does not run at once."""


Veto = Annotated[str, AfterValidator(_check_veto), WithJsonSchema({"type": "string", "pattern": _PATTERN})]
