"""The states and moves of an exploration."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Breach(AssertionError):
    """A broken invariant, with the shortest path to it."""


class Pending(NamedTuple):
    """The result of a transition: the records it makes, whether it makes the run ready, and the worker's next step."""

    after: int
    following: int
    ready: bool
    plan: tuple[str, ...]


class Refused(NamedTuple):
    """The error of a transition."""

    error: str


class Driving(NamedTuple):
    """A worker at work: its suspension, whether its lease is current, and its remaining steps."""

    pause: int
    current: bool
    plan: tuple[str, ...]


class Turn(NamedTuple):
    """A step that an actor may take; `refused` is what the actor knows if it fails."""

    actor: int
    pause: int
    verb: tuple[Any, ...]
    refused: Any
    takes: bool = False


class Slow(NamedTuple):
    """An actor that has read and will commit later; `onwards` is what it then knows."""

    actor: int
    pause: int
    doing: str
    pending: Pending
    onwards: Any


class State(NamedTuple):
    """Everything that distinguishes two states.

    `knows` holds per actor: the decisions a reviewer has made, what a worker drives, nothing for the clock, and the
    owner's actions. `ran` counts how often each call of each suspension was started.
    """

    stands: tuple[int, ...]
    ready: tuple[int, ...]
    knows: tuple[Any, ...]
    ran: tuple[int, ...]
    crashes: int
    slow: Slow | None = None


Move = tuple[str, State, bool]
"""A label, the next state, and whether it is a fault, which no run may need in order to end."""


@dataclass
class Explored:
    """The visited states, and everything seen on the way."""

    states: int = 0
    moves: int = 0
    stands: int = 0
    rows: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)


def put(state: State, actor: int, knows: Any) -> State:
    return state._replace(knows=set_at(state.knows, actor, knows))


def set_at(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
