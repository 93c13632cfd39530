"""Frozen models for the constraints of grants, and for what reviewers send to grant calls or to offer another call."""

from collections.abc import Collection
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from sayso.core.records.base import Immutable


class ConstraintKind(StrEnum):
    """How a constraint limits an argument."""

    EQUAL = "equal"
    AT_MOST = "at_most"
    ONE_OF = "one_of"
    ANY = "any"
    HOSTS = "hosts"
    WITHIN = "within"


class Constraint(Immutable):
    """A limit on one argument: its value, its values, or for `at_most` its largest amount in millionths.

    For `hosts` the value lists the hosts of its URLs, for `within` it is the folder of its paths. With `any` the
    argument must be there, and its value does not matter.
    """

    path: str
    kind: ConstraintKind
    value: JsonValue = None


def may_miss(limit: Constraint) -> bool:
    """Return whether null is one of the values that a limit of a plan names; the argument may then be missing, too."""
    if limit.kind is ConstraintKind.EQUAL:
        return limit.value is None
    return limit.kind is ConstraintKind.ONE_OF and isinstance(limit.value, list) and None in limit.value


class Offered(Immutable):
    """The call that a denial offers instead: within the constraints, and otherwise the same, it passes once.

    `text` says so to the agent.
    """

    grant_id: str
    until_ms: int
    constraints: tuple[Constraint, ...]
    text: str


LONGEST_GRANT_S = 366 * 86_400
SHORTEST_GRANT_S = 60
MOST_GRANTED_CALLS = 1_000_000

ARGUMENT_PATTERN = r"^args(\.[A-Za-z_][A-Za-z0-9_-]{0,99}){1,10}$"
ArgumentName = Annotated[str, Field(pattern=ARGUMENT_PATTERN)]
FREE_PATTERN = r"^args(\.[A-Za-z_][A-Za-z0-9_-]{0,99}){0,10}$"
FreeArgument = Annotated[str, Field(pattern=FREE_PATTERN)]
ALL_ARGUMENTS = "args"
Amount = Annotated[Decimal, Field(gt=0, le=9_000_000_000, decimal_places=6)]
Values = Annotated[tuple[JsonValue, ...], Field(min_length=1, max_length=100)]


class Bounds(Immutable):
    """Limits on the arguments of later calls, by argument such as `args.amount`."""

    equal: dict[ArgumentName, JsonValue] = Field(
        default_factory=dict, max_length=20, description="Arguments that must have exactly this value."
    )
    at_most: dict[ArgumentName, Amount] = Field(
        default_factory=dict, max_length=20, description="Arguments that must be a number of at most this."
    )
    one_of: dict[ArgumentName, Values] = Field(
        default_factory=dict, max_length=20, description="Arguments that must have one of these values."
    )

    @model_validator(mode="after")
    def _check_apart(self) -> Self:
        twice = {*self.equal} & {*self.at_most} | {*self.equal} & {*self.one_of} | {*self.at_most} & {*self.one_of}
        if twice:
            raise ValueError(f"{min(twice)} has two limits; keep one of equal, at_most and one_of")
        return self


class GrantRequest(Bounds):
    """What an approval also grants: like calls run without asking, within these limits and those of the rule.

    Arguments without a limit must stay as in this call, and no other may be added, except those in `free`.
    """

    for_s: int = Field(ge=SHORTEST_GRANT_S, le=LONGEST_GRANT_S, description="How long it lasts, in seconds.")
    count: int | None = Field(
        default=None, ge=1, le=MOST_GRANTED_CALLS, description="The most calls; null for the most that the rule grants."
    )
    sum: Amount | None = Field(
        default=None,
        description="The most of the rule's summed argument over all calls; null for the most that the rule grants.",
    )
    same: tuple[ArgumentName, ...] = Field(
        default=(), max_length=20, description="Arguments that must stay as in this call, and that its sentence names."
    )
    free: tuple[FreeArgument, ...] = Field(
        default=(),
        max_length=20,
        description="Arguments that may have any value or be missing; `args` for any arguments. All others are fixed.",
    )

    @model_validator(mode="after")
    def _check_free(self) -> Self:
        check_free(self.free, {*self.equal, *self.at_most, *self.one_of, *self.same})
        return self


def check_free(free: Collection[str], limited: Collection[str]) -> None:
    """Refuse a free argument that a limit binds, in whole or in part."""
    for path in free:
        for other in limited:
            nested = path != ALL_ARGUMENTS and (path.startswith(f"{other}.") or other.startswith(f"{path}."))
            if path == other or nested:
                raise ValueError(f"{path} cannot be free: {other} has a limit; keep one of them")


class CounterOffer(Bounds):
    """The call that a denial offers instead: it passes once without asking. Other arguments stay as they were."""

    @model_validator(mode="after")
    def _check_stated(self) -> Self:
        if not (self.equal or self.at_most or self.one_of):
            raise ValueError("an offer needs a limit; add equal, at_most or one_of, or deny without an offer")
        return self


class ChangeRequest(Immutable):
    """What a denial asks the agent to change in its call, before it asks again."""

    paths: tuple[ArgumentName, ...] = Field(
        default=(), max_length=20, description="The arguments to change, such as `args.amount`; none for any."
    )


class RequestedChanges(ChangeRequest):
    """The changes that a denial asks for: how often reviewers have asked for some of this call, and may."""

    round: int = Field(description="How often reviewers have requested changes of the call, this time included.")
    rounds: int = Field(description="How often they may.")

    def describe(self, tool: str, message: str) -> str:
        """Return what the agent gets as the reason of the denial."""
        change = f" Change {', '.join(self.paths)}, and call" if self.paths else " Change the call, and make"
        again = f"{change} {tool} again." if self.paths else f"{change} it again."
        return f"Changes requested ({self.round} of {self.rounds}): {message.rstrip('.')}.{again}"


class Revision(Immutable):
    """The item of which another is a new version, and how often changes of the call were requested until then."""

    suspension_id: str
    item_id: str
    round: int
