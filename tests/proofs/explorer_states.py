"""The states and moves of an exploration."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class InvariantViolation(AssertionError):
    """A broken invariant, with the shortest path to it."""


class Applied(NamedTuple):
    """The result of a transition: the records it makes, whether it makes the run ready, and the worker's next step."""

    after: int
    following: int
    ready: bool
    plan: tuple[str, ...]


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
    owner's actions. `ran` counts how often each call of each suspension was started.
    """

    records: tuple[int, ...]
    ready: tuple[int, ...]
    memory: tuple[Any, ...]
    ran: tuple[int, ...]
    crashes: int
    delayed: DelayedCommit | None = None


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
