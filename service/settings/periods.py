"""Settings of work, retention and sessions."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

LONGEST_SESSION_S = 366 * 86_400


class PeriodSettings(BaseSettings):
    """Worker counts and periods; a part of `Settings`."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    workers: int = Field(default=2, ge=1, le=64)
    """Number of worker processes that `make up` starts."""
    lease_s: int = Field(default=30, ge=1, le=3600)
    """Seconds a worker holds a run before another may take it up; renewed while it works."""
    drain_window_s: int = Field(default=30, ge=1, le=3600)
    """Longest time in seconds one job goes on taking runs from the ready list."""
    drain_concurrency: int = Field(default=64, ge=1, le=1024)
    """Runs one job drives at the same time."""
    keep_runs_days: int = Field(default=30, ge=1, le=36_500)
    """Days after its end at which a run's records and state are deleted."""
    keep_trail_days: int = Field(default=365, ge=1, le=36_500)
    """Days after its end at which a run's trail is deleted too: the last that is known of it."""
    keep_calls_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after a run's end at which the contents of its calls are erased; decisions stay. Unset: never."""
    session_idle_s: int = Field(default=7_200, ge=60, le=LONGEST_SESSION_S)
    """Seconds after which a reviewer who did nothing is signed out."""
    session_max_s: int = Field(default=43_200, ge=60, le=LONGEST_SESSION_S)
    """Seconds after which a reviewer signs in again in any case."""

    attention_look_ms: int = Field(default=1_000, ge=100, le=60_000)
    """Look in milliseconds below which an approval counts as instant in the insights."""
    attention_percent: int = Field(default=50, ge=1, le=100)
    """Share of instant approvals in percent from which the insights flag a reviewer, for admins and the reviewer."""
    attention_fewest: int = Field(default=20, ge=5, le=10_000)
    """Measured approvals below which nobody is flagged."""

    @model_validator(mode="after")
    def _check_sessions(self) -> Self:
        if self.session_idle_s > self.session_max_s:
            raise ValueError("SAYSO_SESSION_IDLE_S is above SAYSO_SESSION_MAX_S; make it the smaller one")
        return self

    @model_validator(mode="after")
    def _check_retention(self) -> Self:
        if self.keep_trail_days < self.keep_runs_days:
            raise ValueError("SAYSO_KEEP_TRAIL_DAYS is below SAYSO_KEEP_RUNS_DAYS; a trail is kept as long as its run")
        if self.keep_calls_days is not None and self.keep_calls_days >= self.keep_trail_days:
            raise ValueError(
                "SAYSO_KEEP_CALLS_DAYS is not below SAYSO_KEEP_TRAIL_DAYS, when the last of a call is deleted anyway; "
                "lower it, or leave it out"
            )
        return self
