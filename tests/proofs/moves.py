"""What an exploration moves between: who may do what, what that comes to, and everything that makes a difference."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Breach(AssertionError):
    """One of the things that must always hold does not, with the shortest way to it."""


class Pending(NamedTuple):
    """What a verb came to: the stands it makes, whether it tells the workers, and what a worker does next."""

    after: int
    following: int
    ready: bool
    plan: tuple[str, ...]


class Refused(NamedTuple):
    """Why a verb raised."""

    error: str


class Driving(NamedTuple):
    """A worker at work: on which pause, whether its lease is the present one, and what it is still to do."""

    pause: int
    current: bool
    plan: tuple[str, ...]


class Turn(NamedTuple):
    """What an actor may try now; `refused` is what it knows after it came to nothing."""

    actor: int
    pause: int
    verb: tuple[Any, ...]
    refused: Any
    takes: bool = False


class Slow(NamedTuple):
    """Who has looked, lets time pass, and will commit; `onwards` is what it knows then."""

    actor: int
    pause: int
    doing: str
    pending: Pending
    onwards: Any


class State(NamedTuple):
    """Everything that makes a difference.

    `knows` holds, actor by actor, how many words a reviewer has said, what a worker drives, nothing for the clock, and
    how many deeds the owner has done. `ran` counts how often each call of each pause was started.
    """

    stands: tuple[int, ...]
    ready: tuple[int, ...]
    knows: tuple[Any, ...]
    ran: tuple[int, ...]
    crashes: int
    slow: Slow | None = None


Move = tuple[str, State, bool]
"""What is done, what it leads to, and whether it is a fault, on which nothing may depend for its end."""


@dataclass
class Explored:
    """What was walked, and all that was seen on the way."""

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
