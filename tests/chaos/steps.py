"""Follow a trail through the table of legal steps: where each event leaves the suspension that it tells of."""

from collections.abc import Iterator, Sequence

from sayso.records.events import EventType, TrailEntry
from sayso.records.suspensions import Status
from sayso.transitions.table import LEGAL

MOVES: dict[EventType, tuple[Status, ...]] = {
    EventType.RUN_STARTED: (Status.DECIDED,),
    EventType.DECIDED: (Status.DECIDED,),
    EventType.RUN_RESUMING: (Status.RESUMING,),
    EventType.RUN_RELEASED: (Status.DECIDED,),
    EventType.RUN_REVIVED: (Status.DECIDED,),
    EventType.RUN_COMPLETED: (Status.RESUMED,),
    EventType.RUN_DEGRADED: (Status.RESUMED,),
    EventType.RUN_FAILED: (Status.RESUMED, Status.FAILED),
    EventType.RUN_CANCELLED: (Status.CANCELLED,),
}
"""Where a suspension stands after each kind of event that moves it; no outcome of an item does, `decided` follows."""

OF_STEPS = frozenset().union(*(step.events for step in LEGAL.values()))
"""The kinds that some step tells of; all others tell of what a leased worker does."""


def find_illegal_step(entries: Sequence[TrailEntry]) -> Iterator[str]:
    """Yield the first event that no verb of the table could have told where the run stood."""
    status: Status | None = None
    for entry in entries:
        following = _follow(status, EventType(entry.type))
        if following is None:
            yield f"entry {entry.seq} tells of {entry.type} while the suspension was {status or 'not there'}"
            return
        status = following


def _follow(status: Status | None, kind: EventType) -> Status | None:
    """Return where the run's latest suspension stands after the event, or None when there is no such step."""
    if kind is EventType.RUN_PAUSED:  # one commit: this suspension is resumed, and the run's next one waits
        again = _is_step(status, kind, Status.RESUMED)
        return Status.PENDING if again and Status.PENDING in LEGAL["suspend"].targets else None
    if kind not in OF_STEPS:
        return status if status is Status.RESUMING else None
    targets = MOVES.get(kind, () if status is None else (status,))
    return next((target for target in targets if _is_step(status, kind, target)), None)


def _is_step(status: Status | None, kind: EventType, target: Status) -> bool:
    return any(kind in step.events and status in step.sources and target in step.targets for step in LEGAL.values())
