"""Check that a trail follows the table of legal transitions."""

from collections.abc import Iterator, Sequence

from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import Status
from sayso.core.transitions.legal import LEGAL

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
"""Status after each event that changes it. An item's outcome changes none; `decided` follows."""

OF_STEPS = frozenset().union(*(step.events for step in LEGAL.values()))
"""Events of transitions. All other events belong to a leased worker."""


def find_illegal_step(entries: Sequence[TrailEntry]) -> Iterator[str]:
    """Yield the first event that no legal transition explains."""
    status: Status | None = None
    for entry in entries:
        following = _follow(status, EventType(entry.type))
        if following is None:
            yield f"entry {entry.seq} is {entry.type} while the suspension was {status or 'missing'}"
            return
        status = following


def _follow(status: Status | None, kind: EventType) -> Status | None:
    """Return the status of the run's latest suspension after the event, or None without such a step."""
    if kind is EventType.RUN_PAUSED:  # one commit: this suspension is resumed, and the run's next one waits
        again = _is_step(status, kind, Status.RESUMED)
        return Status.PENDING if again and Status.PENDING in LEGAL["suspend"].targets else None
    if kind not in OF_STEPS:
        return status if status is Status.RESUMING else None
    targets = MOVES.get(kind, () if status is None else (status,))
    return next((target for target in targets if _is_step(status, kind, target)), None)


def _is_step(status: Status | None, kind: EventType, target: Status) -> bool:
    return any(kind in step.events and status in step.sources and target in step.targets for step in LEGAL.values())
