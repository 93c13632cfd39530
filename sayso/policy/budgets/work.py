"""The work that one evaluation of rules may do in an event loop; what costs more is deferred.

A condition whose cost, estimated before it starts, is over the rest of the budget is evaluated in a process that can be
killed. The rules are then evaluated again with its verdict. Without a budget, as in the SDK, every condition is
evaluated at once.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from pydantic import JsonValue

from sayso.canonical_json import JsonObject

INLINE_US = 20_000
"""The estimated microseconds of one evaluation in the event loop. Estimates are upper bounds."""

MOST_ROUNDS = 8
"""How often rules are evaluated again with the verdicts of deferred conditions."""

NOT_HERE = "it needs more work than can be done at once"

Computed = tuple[str, tuple[str | int, ...], str | None, bool, JsonValue]
"""A computed value: the parts of its call, and the value."""

P = ParamSpec("P")
T = TypeVar("T")


class Verdict(NamedTuple):
    """The result of a deferred condition: whether it holds, or why that is unknown; and what was computed for it."""

    holds: bool | None
    fault: str = ""
    computed: Sequence[Computed] = ()


class Deferred(Exception):
    """Conditions must be evaluated elsewhere first."""


class Job(NamedTuple):
    """Conditions to evaluate elsewhere: the facts about one call, and the expressions that read them."""

    facts: JsonObject
    whens: dict[str, None]


class Work:
    """The budget of one evaluation, the verdicts that are known, and the conditions that are wanted."""

    def __init__(self) -> None:
        self.left_us = INLINE_US
        self.is_last = False
        self._known: dict[tuple[bytes, str], Verdict] = {}
        self._wanted: dict[bytes, Job] = {}

    def admits(self, cost_us: float) -> bool:
        """Take a cost from the budget; return False, and take nothing, if less is left."""
        if cost_us > self.left_us:
            return False
        self.left_us -= int(cost_us)
        return True

    def find(self, key: bytes, when: str, describe: Callable[[], JsonObject]) -> Verdict:
        """Return the verdict on a condition; one that is not known yet is wanted, and its verdict is a fault."""
        known = self._known.get((key, when))
        if known is not None:
            return known
        if key not in self._wanted:
            self._wanted[key] = Job(describe(), {})
        self._wanted[key].whens[when] = None
        return Verdict(None, NOT_HERE)

    def check(self) -> None:
        """Raise `Deferred` if conditions are wanted, unless this is the last round."""
        if self._wanted and not self.is_last:
            raise Deferred

    def take(self) -> list[tuple[bytes, Job]]:
        """Return what is wanted, by the key of its facts, and start the next round with a full budget."""
        wanted, self._wanted, self.left_us = self._wanted, {}, INLINE_US
        return [*wanted.items()]

    def learn(self, key: bytes, job: Job, verdicts: Sequence[Verdict]) -> None:
        """Keep the verdicts on the conditions of a job, in their order."""
        for when, verdict in zip(job.whens, verdicts, strict=True):
            self._known[key, when] = verdict


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


class Settle(Protocol):
    """Returns what an evaluation of rules returns, perhaps after deferred conditions got their verdicts."""

    async def __call__(self, evaluate: Callable[[], T]) -> T:
        """Return what `evaluate` returns."""


async def settle_here(evaluate: Callable[[], T]) -> T:
    """Evaluate at once, without a budget: the caller's process is the agent's own."""
    return evaluate()


Compute = Callable[[Job], Awaitable[Sequence[Verdict]]]
"""Evaluates the conditions of a job where they can be killed; every one has a verdict."""


def find_work() -> Work | None:
    """Return the budget in use, None without one."""
    return _WORK.get()


@contextmanager
def working(work: Work) -> Iterator[None]:
    """Use a budget for the length of a block."""
    before = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(before)


def complete(evaluate: Callable[P, T]) -> Callable[P, T]:
    """Make an evaluation raise `Deferred` at its end, if it returns or raises, while verdicts are missing."""

    @wraps(evaluate)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return evaluate(*args, **kwargs)
        finally:
            if (work := _WORK.get()) is not None:
                work.check()

    return run


async def settle(act: Callable[[], Awaitable[T]], compute: Compute) -> T:
    """Return what `act` returns within a budget; repeat it while deferred conditions get their verdicts."""
    work = Work()
    for _ in range(MOST_ROUNDS):
        with working(work):
            try:
                return await act()
            except Deferred:
                pass
        for key, job in work.take():
            work.learn(key, job, await compute(job))
    work.is_last = True
    with working(work):
        return await act()


def settle_blocking(evaluate: Callable[[], T], compute: Callable[[Job], Sequence[Verdict]]) -> T:
    """Do what `settle` does in a thread, which may wait."""
    work = Work()
    for _ in range(MOST_ROUNDS):
        with working(work):
            try:
                result = evaluate()
                work.check()
                return result
            except Deferred:
                pass
        for key, job in work.take():
            work.learn(key, job, compute(job))
    work.is_last = True
    with working(work):
        return evaluate()
