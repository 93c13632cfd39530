"""Frozen models for freezes."""

from typing import Literal

from pydantic import Field

from sayso.records.base import Immutable
from sayso.records.suspensions import SuspensionRecord

ALL = "all"
TIME = "time"
"""The scope of a clock in doubt. Only the clock freezes it."""

SCOPE_PATTERN = r"^(all|agent:[^\x00-\x1f]{1,200}|tool:[^\x00-\x1f]{1,200})$"


class Freeze(Immutable):
    """An emergency stop: nothing new starts within `scope`, which is everything, one agent or one tool.

    A freeze of time begins at the last reading of the clock that is certain; `jumped_to_ms` is the next reading.
    """

    id: str
    scope: str = Field(pattern=rf"^{TIME}$|{SCOPE_PATTERN}")
    reason: str = Field(default="", max_length=2000)
    by: str
    at_ms: int
    unfrozen_by: str | None = None
    unfrozen_at_ms: int | None = None
    jumped_to_ms: int | None = None
    deadlines: Literal["move", "pass"] = Field(
        default="move", description="Whether unfreezing moves deadlines by the frozen time, or lets them pass."
    )
    settled: bool = Field(default=False, description="Whether everything it held was resumed after unfreezing.")

    @property
    def in_force(self) -> bool:
        return self.unfrozen_at_ms is None

    def covers(self, agent: str, tool: str | None = None) -> bool:
        return self.scope in (ALL, f"agent:{agent}") or (tool is not None and self.scope == f"tool:{tool}")

    def held(self, record: SuspensionRecord) -> bool:
        """Whether any part of the record was in scope."""
        if self.scope == TIME:
            return self.doubts(record)
        tools = {item.tool.name for item in record.items} | set(record.waits_for)
        return any(self.covers(record.run.agent, tool) for tool in (None, *tools))

    def doubts(self, record: SuspensionRecord) -> bool:
        """Whether this is a freeze of time that began after the record."""
        return self.jumped_to_ms is not None and record.created_at_ms < self.jumped_to_ms
