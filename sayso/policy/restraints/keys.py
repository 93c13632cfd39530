"""Frozen models for the keys `after_denial` and `asks` of a rule, as a rules file states them."""

from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from sayso.records.base import Immutable

MOST_ASKED = 10_000


def _is_missing(value: Any) -> bool:
    return value is None


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

    after_denial: AfterDenial | None = Field(default=None, exclude_if=_is_missing)
    asks: Asks | None = Field(default=None, exclude_if=_is_missing)

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
