"""Frozen models for freezes: what an admin, or a clock in doubt, keeps from starting."""

from typing import Literal

from pydantic import Field

from sayso.records.base import Immutable
from sayso.records.suspensions import SuspensionRecord

ALL = "all"
TIME = "time"
"""The scope that only the clock freezes: what would happen because a moment has come."""

SCOPE_PATTERN = r"^(all|agent:[^\x00-\x1f]{1,200}|tool:[^\x00-\x1f]{1,200})$"


class Freeze(Immutable):
    """An admin's word that nothing new starts within `scope`: everything, one agent, or one tool.

    Of time it is the clock's own, from the last moment that is sure on; `jumped_to_ms` is what the store said next.
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
        default="move", description="Whether lifting it moves deadlines by the time that it took, or lets them pass."
    )
    settled: bool = Field(default=False, description="Whether all that it held was woken after it was lifted.")

    @property
    def in_force(self) -> bool:
        """Whether nobody has lifted it."""
        return self.unfrozen_at_ms is None

    def covers(self, agent: str, tool: str | None = None) -> bool:
        """Whether a call of this tool by this agent is within the scope."""
        return self.scope in (ALL, f"agent:{agent}") or (tool is not None and self.scope == f"tool:{tool}")

    def held(self, record: SuspensionRecord) -> bool:
        """Whether anything of the record was within the scope."""
        if self.scope == TIME:
            return self.doubts(record)
        tools = {item.tool.name for item in record.items} | set(record.waits_for)
        return any(self.covers(record.run.agent, tool) for tool in (None, *tools))

    def doubts(self, record: SuspensionRecord) -> bool:
        """Whether it is of time, and began after the record did."""
        return self.jumped_to_ms is not None and record.created_at_ms < self.jumped_to_ms
