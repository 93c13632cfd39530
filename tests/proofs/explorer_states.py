"""The states and moves of an exploration."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.errors import AlreadyDecided


class InvariantViolation(AssertionError):
    """A broken invariant, with the shortest path to it."""


class Applied(NamedTuple):
    """The result of a transition: the records it makes, whether it makes the run ready, and the worker's next step.

    `handed` is the place of the worker that the same commit hands the run to, and the plans it may follow.
    """

    after: int
    following: int
    ready: bool
    plan: tuple[str, ...]
    handed: tuple[int, tuple[tuple[str, ...], ...]] | None = None


class Handed(NamedTuple):
    """A run on the list of the worker that it was handed to, and the plans that this worker may follow."""

    suspension: int
    current: bool
    plans: tuple[tuple[str, ...], ...]


class Refused(NamedTuple):
    """The error of a transition."""

    error: str


class WorkerState(NamedTuple):
    """The state of a worker: its suspension, whether its lease is current, and its remaining steps."""

    suspension: int
    current: bool
    plan: tuple[str, ...]


class Turn(NamedTuple):
    """A step that an actor may take; `refused` is what the actor remembers if it fails."""

    actor: int
    suspension: int
    verb: tuple[Any, ...]
    refused: Any
    takes: bool = False


class DelayedCommit(NamedTuple):
    """An actor that has read and will commit later; `next_memory` is what it then remembers."""

    actor: int
    suspension: int
    verb: str
    applied: Applied
    next_memory: Any


class State(NamedTuple):
    """Everything that distinguishes two states.

    `memory` holds per actor: the decisions a reviewer has made, what a worker drives, nothing for the clock, and the
    owner's actions. `ran` counts how often each call of each suspension was started. `handed` holds per worker what is
    on its own list.
    """

    records: tuple[int, ...]
    ready: tuple[int, ...]
    memory: tuple[Any, ...]
    ran: tuple[int, ...]
    crashes: int
    delayed: DelayedCommit | None = None
    handed: tuple[Handed | None, ...] = ()


Move = tuple[str, State, bool]
"""A label, the next state, and whether it is a fault, which no run may need in order to end."""


@dataclass
class Explored:
    """The visited states, and everything seen on the way."""

    states: int = 0
    moves: int = 0
    records: int = 0
    rows: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)


def remember(state: State, actor: int, memory: Any) -> State:
    return state._replace(memory=replace_at(state.memory, actor, memory))


def replace_at(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def fence_off(state: State, workers: range, leased: int, suspension: int) -> State:
    """Return the state after a lease: no other worker holds the run, nor gets it from its own list."""
    for actor in workers:
        worker = state.memory[actor]
        if actor != leased and worker is not None and worker.suspension == suspension:
            state = remember(state, actor, worker._replace(current=False))
    entries = (one and one._replace(current=one.current and one.suspension != suspension) for one in state.handed)
    return state._replace(handed=tuple(entries))


def find_stuck(ended: list[int], sources: list[list[int]]) -> int | None:
    """I2, I12: return a state that leads to none of the ended states without a fault.

    `sources` lists, for each state, the states that lead to it.
    """
    queue = deque(ended)
    seen = bytearray(len(sources))
    for at in queue:
        seen[at] = 1
    while queue:
        for source in sources[queue.popleft()]:
            if not seen[source]:
                seen[source] = 1
                queue.append(source)
    stuck = seen.find(0)
    return None if stuck < 0 else stuck


def check_decided_by(record: SuspensionRecord, item_id: str, by: str, error: AlreadyDecided) -> None:
    """I1, I13: the error for the second reviewer names the first; without an outcome that is this reviewer, `by`."""
    outcome = find_item(record, item_id).outcome
    first, named = outcome.by.id if outcome is not None else by, error.facts.get("decided_by")
    if named != first:
        raise InvariantViolation(f"the error names {named} as the first reviewer; it was {first}.")


def describe_path(scenario: str, paths: list[tuple[int, str]], records: list[SuspensionRecord], at: int) -> str:
    """Return the records of a state, and the shortest path to it."""
    steps: list[str] = []
    while at > 0:
        at, label = paths[at]
        steps.append(label)
    where = ", ".join(f"{record.id} {record.status}" for record in records)
    return f"[{scenario}: {where}] Path: {' > '.join(reversed(steps)) or 'none'}."
