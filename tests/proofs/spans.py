"""Say in the plainest words what stands still, and for how long it did: the model's side of freezes."""

from dataclasses import dataclass
from itertools import pairwise

SCOPES = ("all", "agent:a", "tool:refund", "tool:other")
"""Every run is of the agent `a`, every call one of `refund`."""


@dataclass
class Span:
    """One freeze, from its first moment to its lifting."""

    scope: str
    begun: int
    unfrozen: int | None = None

    def held(self, *, tools: bool) -> bool:
        """Whether it concerns a run: all of it, or the calls that there are."""
        return self.scope in ("all", "agent:a") or (tools and self.scope == "tool:refund")

    def holds(self, *, tools: bool) -> bool:
        return self.unfrozen is None and self.held(tools=tools)


def lost(spans: list[Span], since: int, now: int) -> int:
    """How many of the moments between the two stood still."""
    marks = sorted({since, now, *(mark for one in spans for mark in _ends(one, now) if since < mark < now)})
    calls = [one for one in spans if one.held(tools=True)]
    return sum(to - at for at, to in pairwise(marks) if any(one.begun <= at < _ends(one, now)[1] for one in calls))


def last(spans: list[Span], now: int) -> int:
    """The last moment so far that stood still."""
    return max((min(_ends(one, now)[1], now) for one in spans if one.held(tools=True)), default=0)


def _ends(span: Span, now: int) -> tuple[int, int]:
    return span.begun, now if span.unfrozen is None else span.unfrozen
