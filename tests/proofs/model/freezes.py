"""The model of freezes: what is frozen, and for how long."""

from dataclasses import dataclass
from itertools import pairwise

SCOPES = ("all", "agent:a", "tool:refund", "tool:other")
"""Every run is of agent `a`, and every call of tool `refund`."""


@dataclass
class FreezeModel:
    """One freeze, from its start to its end."""

    scope: str
    started_at: int
    unfrozen_at: int | None = None

    def covers(self, *, tools: bool) -> bool:
        """Whether it covers the run, or the calls that it has."""
        return self.scope in ("all", "agent:a") or (tools and self.scope == "tool:refund")

    def is_active(self, *, tools: bool) -> bool:
        return self.unfrozen_at is None and self.covers(tools=tools)


def sum_frozen_time(freezes: list[FreezeModel], since: int, now: int) -> int:
    """Return how much of the time between two moments was frozen."""
    marks = sorted({since, now, *(mark for one in freezes for mark in _bounds(one, now) if since < mark < now)})
    covering = [one for one in freezes if one.covers(tools=True)]
    return sum(
        end - start
        for start, end in pairwise(marks)
        if any(one.started_at <= start < _bounds(one, now)[1] for one in covering)
    )


def find_last_frozen(freezes: list[FreezeModel], now: int) -> int:
    """Return the last frozen moment so far."""
    return max((min(_bounds(one, now)[1], now) for one in freezes if one.covers(tools=True)), default=0)


def _bounds(freeze: FreezeModel, now: int) -> tuple[int, int]:
    return freeze.started_at, now if freeze.unfrozen_at is None else freeze.unfrozen_at
