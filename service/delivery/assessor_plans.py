"""The assessors file: where each assessor is, how long it may take, and which scores make which level.

    assessors:
      fraud:
        url: https://risk.example.org/assess
        secret: whsec_…
        timeout_s: 2
      amounts:
        function: acme.risk:assess_amount

Every fault is reported with its line; a program with a faulty file does not start.
"""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from sayso.core.clock import now_ms
from sayso.core.policy.rule_keys import AssessorName
from sayso.core.records.assessments import Level
from sayso.core.signing import sign_message
from sayso.errors import InvalidInput
from service.delivery.addresses import UnsafeUrl, check_url
from service.settings.plans import read_plan
from service.settings.receivers import InternalReceivers

Function = Callable[[dict[str, Any]], object]
"""A function of the call that returns what an assessor's server would answer."""


class InvalidAssessors(InvalidInput):
    """The assessors file is invalid; correct it and start again."""


class AssessorPlan(BaseModel):
    """One assessor: a server, which gets signed requests, or a function."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = Field(default=None, pattern="^https?://", max_length=2000)
    secret: SecretStr | None = None
    function: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
    timeout_s: float = Field(default=2, ge=0.1, le=10)
    medium: float = Field(default=0.5, gt=0, le=1)
    high: float = Field(default=0.8, gt=0, le=1)

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            sign_message(secret.get_secret_value(), "check", now_ms() // 1000, b"")  # raises ValueError
        return secret

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (self.function is None):
            raise ValueError("an assessor has a url or a function; write one of them")
        if (self.url is None) != (self.secret is None):
            raise ValueError("a url needs a secret that signs its requests, and a function has none; correct that")
        if self.medium > self.high:
            raise ValueError("medium is above high, so no score is medium; swap them")
        if self.function is not None:
            self.load_function()
        return self

    def load_function(self) -> Function:
        """Return the function; raises `ValueError` if there is none."""
        module, _, name = (self.function or "").partition(":")
        try:
            target = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"{self.function} cannot be imported: {error}; correct it") from error
        if not callable(target):
            raise ValueError(f"{self.function} is not a function; correct it")
        function: Function = target
        return function

    def find_level(self, score: float) -> Level:
        """Return the level of a score."""
        if score >= self.high:
            return Level.HIGH
        return Level.MEDIUM if score >= self.medium else Level.LOW


class AssessorPlans(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    assessors: dict[AssessorName, AssessorPlan] = Field(default_factory=dict)


@cache
def assessors_of(path: Path | None) -> AssessorPlans:
    """Return the assessors of a file, read once in each process."""
    return read_assessors(path)


def check_receivers(plans: AssessorPlans, internal: InternalReceivers, *, loopback: bool = False) -> None:
    """Raise `InvalidAssessors` with each url to which no request may be sent."""
    faults = []
    for name, plan in plans.assessors.items():
        try:
            if plan.url is not None:
                check_url(plan.url, loopback=loopback, internal=internal)
        except UnsafeUrl as error:
            faults.append(f"SAYSO_ASSESSORS: assessors.{name}.url: {error.message}")
    if faults:
        raise InvalidAssessors("\n".join(faults))


def read_assessors(path: Path | None) -> AssessorPlans:
    """Return the assessors of a file, none without a file; raises `InvalidAssessors` with all faults."""
    return read_plan(path, AssessorPlans, "SAYSO_ASSESSORS", InvalidAssessors)
