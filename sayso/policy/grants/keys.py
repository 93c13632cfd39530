"""Frozen models for the key `grants` of a rule, as a rules file states it."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from sayso.policy.memory.keys import ArgumentPath, Money, Period, read_names
from sayso.records.base import Immutable
from sayso.records.memory.bounds import MOST_GRANTED_CALLS

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
    """Refuse grants in a rule that asks for no approval."""
    asks = info.data.get("action", "request_approval") == "request_approval"
    if grants is not None and not asks:
        raise ValueError("only calls that need an approval can be granted; write `action: request_approval`")
    return grants
