"""The model of freezes: what is frozen, and for how long."""

from dataclasses import dataclass
from itertools import pairwise

SCOPES = ("all", "agent:a", "tool:refund", "tool:other")
"""Every run is of agent `a`, and every call of tool `refund`."""


@dataclass
class Span:
    """One freeze, from its start to its end."""

    scope: str
    begun: int
    unfrozen: int | None = None

    def held(self, *, tools: bool) -> bool:
        """Whether it covers the run, or the calls that it has."""
        return self.scope in ("all", "agent:a") or (tools and self.scope == "tool:refund")

    def holds(self, *, tools: bool) -> bool:
        return self.unfrozen is None and self.held(tools=tools)


def lost(spans: list[Span], since: int, now: int) -> int:
    """Return how much of the time between two moments was frozen."""
    marks = sorted({since, now, *(mark for one in spans for mark in _ends(one, now) if since < mark < now)})
    calls = [one for one in spans if one.held(tools=True)]
    return sum(to - at for at, to in pairwise(marks) if any(one.begun <= at < _ends(one, now)[1] for one in calls))


def last(spans: list[Span], now: int) -> int:
    """Return the last frozen moment so far."""
    return max((min(_ends(one, now)[1], now) for one in spans if one.held(tools=True)), default=0)


def _ends(span: Span, now: int) -> tuple[int, int]:
    return span.begun, now if span.unfrozen is None else span.unfrozen
