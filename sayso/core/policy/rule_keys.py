"""Frozen models for keys of a rule, as a rules file states them: counters, `grants`, `assess` and restraints."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from sayso.core.policy.counters.readings import MAX_AMOUNT
from sayso.core.records.base import Immutable, is_empty
from sayso.core.records.envelopes import MOST_GRANTED_CALLS
from sayso.core.records.judgements import CounterKey, Level
from sayso.core.records.terms import RuleTerms, check_each_of, may_reach

COUNTER_KEYS = ("limit", "budget", "over", "unseen", "above", "repeats")
MOST_CALLS = 1_000_000
MOST_SAMPLES = 500  # the amounts that `above` compares with: the latest ones
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

Period = Annotated[
    int,
    BeforeValidator(lambda value: read_period(value) if isinstance(value, str) else value),
    AfterValidator(_check_period),
    WithJsonSchema(_PERIOD_SCHEMA),
]
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


Stated = Sequence[tuple[CounterKey, Any]]  # the keys of a rule, with what each states


def list_stated(fields: Mapping[str, Any]) -> Stated:
    """Return the keys among the fields of a condition, those below `over` apart."""
    over: Over | None = fields["over"]
    keys = {**fields, "over.limit": over and over.limit, "over.budget": over and over.budget}
    return tuple((key, keys[key]) for key in get_args(CounterKey) if keys[key] is not None)


def check_counters(keys: Stated, *, allows: bool, models: bool) -> None:
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


Arguments = Annotated[tuple[ArgumentPath, ...], BeforeValidator(read_names), Field(max_length=8)]


class GrantedSum(Immutable):
    """The most that a grant may let an argument be in sum."""

    of: ArgumentPath
    max: Money


class Learn(Immutable):
    """When Sayso proposes a grant, and what must show that it is right before people can put it in force.

    It is proposed after so many like calls were approved, and none denied or edited. Calls are alike with the same
    arguments, except for the summed one and those that are `free`.
    """

    after: int = Field(default=20, ge=2, le=200)
    probation: int = Field(default=10, ge=1, le=200)
    free: Arguments = ()


class Grants(Immutable):
    """What reviewers may grant for calls that a rule asks about, and how many of them must.

    The arguments of `by` must stay as in the call that was approved.
    """

    longest: Period
    count: int | None = Field(default=None, ge=1, le=MOST_GRANTED_CALLS)
    sum: GrantedSum | None = None
    by: Arguments = ()
    people: int = Field(default=1, ge=1, le=20)
    learn: Learn | None = None

    @model_validator(mode="after")
    def _check_free(self) -> Self:
        fixed = {*self.by, *((self.sum.of,) if self.sum is not None else ())}
        free = self.learn.free if self.learn is not None else ()
        if bound := sorted(fixed & {*free}):
            raise ValueError(f"{bound[0]} cannot be free: `by` and `sum` bind it; take it out of `learn.free`")
        return self


def check_grants(grants: Grants | None, info: ValidationInfo) -> Grants | None:
    """Refuse grants in a rule that asks for no approval, or that asks the acting user each time."""
    if grants is not None and info.data.get("action", "request_approval") != "request_approval":
        raise ValueError("only calls that need an approval can be granted; write `action: request_approval`")
    terms = info.data.get("terms")  # missing when invalid, which is reported itself
    if grants is not None and getattr(terms, "confirm_by", None):
        raise ValueError("calls given ahead would run unconfirmed; remove this, or `confirm_by`")
    if grants is not None and getattr(terms, "stages", None):
        raise ValueError("calls given ahead would pass no stage; remove this, or `stages`")
    if grants is not None and info.field_name == "grants" and getattr(terms, "step_up", None):
        raise ValueError("step_up secures each approval, so nothing is granted; remove grants, or step_up")
    return grants


def check_outsiders(terms: RuleTerms, *, asks: bool) -> None:
    """Refuse addresses outside where they could not approve, or would prove less than a reviewer must."""
    if terms.outsiders and not asks:
        raise ValueError("only an approval can be asked of outsiders; write `action: request_approval`")
    for name in ("step_up", "match_number"):
        if terms.outsiders and getattr(terms, name):
            raise ValueError(f"a mailed code proves less than {name}; remove outsiders, or {name}")
    if terms.outsiders and not terms.quorum.approve:
        raise ValueError("outsiders approve beside reviewers, and nobody needs to approve; raise quorum.approve")


AssessorName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,39}$")]


class Scrutiny(Immutable):
    """What a level adds to the terms of its rule: never fewer approvals, and only reviewers of the rule."""

    quorum: int | None = Field(default=None, ge=1, le=20)
    reviewers: tuple[str, ...] = ()
    match_number: bool = False
    reason: str | None = Field(default=None, min_length=1, max_length=500)

    def add_to(self, terms: RuleTerms) -> RuleTerms:
        quorum = terms.quorum.model_copy(update={"approve": max(terms.quorum.approve, self.quorum or 1)})
        update = {"quorum": quorum, "reviewers": self.reviewers or terms.reviewers}
        return terms.model_copy(update=update | {"match_number": terms.match_number or self.match_number})


class Assess(Immutable):
    """The assessor of a rule, and what each level adds. A call without a usable answer counts as high."""

    by: AssessorName
    medium: Scrutiny | None = None
    high: Scrutiny

    def list_scrutiny(self, level: Level) -> Iterator[Scrutiny]:
        """Yield what a level adds; high also adds what medium does."""
        if level is not Level.LOW and self.medium is not None:
            yield self.medium
        if level is Level.HIGH:
            yield self.high


def check_assess(assess: Assess | None, info: ValidationInfo) -> Assess | None:
    """Refuse an assessor that could change nothing, and scrutiny that asks for less than the rule or for too many."""
    if assess is None:
        return None
    action, mode = info.data.get("action"), info.data.get("mode")
    if action == "deny":
        raise ValueError("a denied call needs no assessor; remove assess, or change the action")
    if mode == "shadow":
        raise ValueError("a shadow rule asks no assessor; remove assess, or `mode: shadow`")
    if info.data.get("subjects") or (info.data.get("condition") and info.data["condition"].event_type):
        raise ValueError("assessors see tool calls only; remove subjects and event")
    terms = info.data.get("terms")  # missing when invalid, which is reported itself
    if terms is not None:
        names = terms.reviewers
        for level, scrutiny in (("medium", assess.medium), ("high", assess.high)):
            if scrutiny is not None:
                _check_scrutiny(level, scrutiny, terms, names)
                names = scrutiny.reviewers or names
    return assess


def _check_scrutiny(level: str, scrutiny: Scrutiny, terms: RuleTerms, names: tuple[str, ...]) -> None:
    if terms.stages and (scrutiny.quorum is not None or scrutiny.reviewers):
        raise ValueError(f"the stages say who decides; remove quorum and reviewers from {level}, or `stages`")
    if scrutiny.quorum is not None and scrutiny.quorum < terms.quorum.approve:
        raise ValueError(
            f"the quorum of {level} is {scrutiny.quorum}, below the {terms.quorum.approve} of the rule; raise it"
        )
    if names and (others := [name for name in scrutiny.reviewers if name not in names]):
        raise ValueError(f"the rule's reviewers do not name {others[0]}; name some of {', '.join(names)} for {level}")
    check_each_of(terms.quorum, scrutiny.reviewers or names)
    people, added = scrutiny.reviewers or names, scrutiny.add_to(terms)
    sampled = terms.sample is not None and terms.sample.before is not None
    if people and not may_reach(people, max(added.quorum.approve + sampled, added.quorum.deny)):
        raise ValueError(f"the quorum of {level} exceeds its {len(people)} reviewers; add reviewers, or lower it")


MOST_ASKED = 10_000


class AfterDenial(StrEnum):
    """What happens to a call that a person has denied, when it is requested again: a person is asked, or not."""

    ASK = "ask"
    DENY = "deny"


class Asks(Immutable):
    """How many calls a rule asks about: of one run and its thread, and of one agent in a minute."""

    per_run: int | None = Field(default=None, ge=1, le=MOST_ASKED)
    per_minute: int | None = Field(default=None, ge=1, le=MOST_ASKED)

    @model_validator(mode="after")
    def _check_stated(self) -> Self:
        if self.per_run is None and self.per_minute is None:
            raise ValueError("needs `per_run`, `per_minute` or both")
        return self


class Restrained(Immutable):
    """What a rule that asks says of repeated requests."""

    after_denial: AfterDenial | None = Field(default=None, exclude_if=is_empty)
    asks: Asks | None = Field(default=None, exclude_if=is_empty)

    @property
    def restrains(self) -> bool:
        """Whether judging a request reads earlier denials or counts what was asked."""
        return self.asks is not None or self.after_denial is AfterDenial.DENY

    @model_validator(mode="after")
    def _check_asking(self) -> Self:
        stated = [name for name in ("after_denial", "asks") if getattr(self, name) is not None]
        if stated and getattr(self, "action", "") in ("allow", "deny"):
            raise ValueError(f"only a rule that asks can have {stated[0]}; remove it, or write request_approval")
        return self
