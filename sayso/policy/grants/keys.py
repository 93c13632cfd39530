"""Frozen models for the key `grants` of a rule, as a rules file states it."""

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from sayso.policy.memory.keys import ArgumentPath, Money, Period, read_names
from sayso.records.base import Immutable
from sayso.records.memory.bounds import MOST_GRANTED_CALLS

Arguments = Annotated[tuple[ArgumentPath, ...], BeforeValidator(read_names), Field(max_length=8)]


class GrantedSum(Immutable):
    """The most that a grant may let an argument be in sum."""

    of: ArgumentPath
    max: Money


class Grants(Immutable):
    """What reviewers may grant for calls that a rule asks about, and how many of them must.

    The arguments of `by` must stay as in the call that was approved.
    """

    longest: Period
    count: int | None = Field(default=None, ge=1, le=MOST_GRANTED_CALLS)
    sum: GrantedSum | None = None
    by: Arguments = ()
    people: int = Field(default=1, ge=1, le=20)


def check_grants(grants: Grants | None, info: ValidationInfo) -> Grants | None:
    """Refuse grants in a rule that asks for no approval."""
    asks = info.data.get("action", "request_approval") == "request_approval"
    if grants is not None and not asks:
        raise ValueError("only calls that need an approval can be granted; write `action: request_approval`")
    return grants
