"""What it may cost to read a value and to evaluate a condition, in microseconds, by counting alone.

The bounds are measured at the slowest inputs that were found for each reader (`make bench ARGS=--holds`). A
condition whose bound is over the rest of the budget, or that has none (`UNBOUNDED`), is evaluated in a process that
can be killed, and the rules again with its verdict. Without a budget, as in the SDK, every condition is evaluated
at once.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject

UNBOUNDED = 10.0**9
MOST_ITERATIONS = 10_000  # the limit of the engine; beyond it a condition has no result
_MACROS = frozenset(("all", "exists", "exists_one", "map", "filter"))
_SLOW = frozenset(("matches", "replace", "split", "join", "format", "lowerAscii", "upperAscii", "charAt", "substring"))
_TOKEN = re.compile(r"""[rR]?"(?:\\.|[^"\\])*"|[rR]?'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d+|\S""", re.DOTALL)
_VALUE_US, _OPERATION_US, _BYTE_US, _SLOW_BYTE_US = 0.5, 0.4, 0.005, 0.3

_SQL_CHARS = 400
_SQL_SLOW = re.compile(r"\b(?:join|array|struct|map|table|lateral|apply)\b|[\[{<:]|\([ \t\n]*\(", re.IGNORECASE)
_MOST_SQL_SLOW, _MOST_SQL_PARENS = 3, 8


_SCALARS = frozenset((int, float, bool, type(None)))


class Size(NamedTuple):
    """The number of values in a value, the characters of its texts, and whether all of them are ASCII."""

    values: int = 0
    chars: int = 0
    plain: bool = True


def measure(value: object) -> Size:
    """Return the size of a JSON value, its keys included."""
    values = chars = 0
    plain = True
    level: list[object] = [value]
    while level:
        values += len(level)
        below: list[object] = []
        for node in level:
            if type(node) in _SCALARS:
                continue
            if isinstance(node, str):
                chars += len(node)
                plain = plain and node.isascii()
            elif isinstance(node, dict):
                keys = "".join(node)
                chars += len(keys)
                plain = plain and keys.isascii()
                below += node.values()
            elif isinstance(node, (list, tuple)):
                below += node
        level = below
    return Size(values, chars, plain)


def weigh_texts(value: JsonValue) -> float:
    """Return the cost of a reader that passes once over a text, or over each text of a list."""
    size = measure(value)
    return 30.0 * size.values + 2.0 * size.chars


def weigh_values(value: JsonValue) -> float:
    """Return the cost of collecting all values."""
    size = measure(value)
    return 2.0 * size.values + 0.05 * size.chars


def weigh_search(value: JsonValue) -> float:
    """Return the cost of a search in all texts; one with signs beyond ASCII is longer in its plain form."""
    size = measure(value)
    return 3.0 * size.values + (1.5 if size.plain else 20.0) * size.chars


def weigh_mail(value: JsonValue) -> float:
    """Return the cost of reading mail addresses; the standard library reads all but plain ones, in quadratic time."""
    if isinstance(value, list):
        return sum(map(weigh_mail, value)) + 5.0
    if not isinstance(value, str):
        return 5.0
    return 30.0 + (3.0 * len(value) if is_plain_mail(value) else 100.0 * len(value) + 0.05 * len(value) ** 2)


def weigh_shell(value: JsonValue) -> float:
    """Return the cost of parsing a command."""
    size = measure(value)
    return 200.0 + (25.0 if size.plain else 100.0) * size.chars + 10.0 * size.values


def weigh_sql(value: JsonValue) -> float:
    """Return the cost of parsing SQL: unbounded for long texts, and for those with much that the parser tries twice."""
    if not isinstance(value, str):
        return 5.0
    slow = len(_SQL_SLOW.findall(value[: _SQL_CHARS + 1]))
    if len(value) > _SQL_CHARS or slow > _MOST_SQL_SLOW or value.count("(") > _MOST_SQL_PARENS:
        return UNBOUNDED
    return (500.0 + 30.0 * len(value)) * 2.0**slow


_PLAIN_ADDRESS = (
    r"[A-Za-z0-9_+-]{1,64}(?:\.[A-Za-z0-9_+-]{1,64}){0,10}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,10}"
)
_PLAIN_MAIL = re.compile(rf" *{_PLAIN_ADDRESS}(?: *, *{_PLAIN_ADDRESS})*+ *")


def is_plain_mail(text: str) -> bool:
    """Return whether a text is a list of bare addresses without any sign that needs a parser."""
    return _PLAIN_MAIL.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _shape(expression: str) -> tuple[int, int, int]:
    """Return the operations of a condition, how many of them are slow on long texts, and how deep its loops nest."""
    operations = slow = depth = deepest = 0
    opened: list[bool] = []
    tokens = _TOKEN.findall(expression)
    for place, sign in enumerate(tokens):
        operations += 1
        if sign == "(":
            loops = place > 0 and tokens[place - 1] in _MACROS
            opened.append(loops)
            depth += loops
            deepest = max(deepest, depth)
        elif sign == ")" and opened:
            depth -= opened.pop()
        elif sign in _SLOW:
            slow += 1
    return operations, slow, deepest


def weigh_condition(expression: str, size: Size) -> float:
    """Return the cost of a condition on values of this size, without that of its computed values."""
    operations, slow, loops = _shape(expression)
    rounds = min(MOST_ITERATIONS, max(size.values, 1) ** loops) if loops else 1
    each = _OPERATION_US * operations + size.chars * (_BYTE_US + _SLOW_BYTE_US * slow)
    return 5.0 + _VALUE_US * size.values + rounds * each


INLINE_US = 20_000  # the estimated microseconds of one evaluation in the event loop. Estimates are upper bounds.
MOST_ROUNDS = 8  # how often rules are evaluated again with the verdicts of deferred conditions
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


WORK: ContextVar[Work | None] = ContextVar("work", default=None)  # the budget in use


class Settle(Protocol):
    """Returns what an evaluation of rules returns, perhaps after deferred conditions got their verdicts."""

    async def __call__(self, evaluate: Callable[[], T]) -> T:
        """Return what `evaluate` returns."""


async def settle_here(evaluate: Callable[[], T]) -> T:
    """Evaluate at once, without a budget: the caller's process is the agent's own."""
    return evaluate()


Compute = Callable[[Job], Awaitable[Sequence[Verdict]]]
"""Evaluates the conditions of a job where they can be killed; every one has a verdict."""


@contextmanager
def working(work: Work) -> Iterator[None]:
    """Use a budget for the length of a block."""
    before = WORK.set(work)
    try:
        yield
    finally:
        WORK.reset(before)


def complete(evaluate: Callable[P, T]) -> Callable[P, T]:
    """Make an evaluation raise `Deferred` at its end, if it returns or raises, while verdicts are missing."""

    @wraps(evaluate)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return evaluate(*args, **kwargs)
        finally:
            if (work := WORK.get()) is not None:
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
