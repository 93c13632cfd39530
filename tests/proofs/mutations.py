"""Find every guard that keeps a run right, and say how the source reads without it.

A guard is an `if` that refuses, returns or passes over, a call of a check, a part of a condition, a filter, or the edge
of a moment. They are found in the source itself, so that a new one cannot be forgotten.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

OWNERS = ("tests/sayso/transitions/test_client_execution.py",)
TABLE = ("tests/sayso/transitions/test_guards.py", "tests/sayso/records/test_suspensions.py")
PAUSES = (
    "tests/sayso/transitions/test_deciding.py",
    "tests/sayso/transitions/test_coverage.py",
    "tests/sayso/transitions/test_sightings.py",
    "tests/sayso/transitions/test_doubted_time.py",
)
DRIVING = ("tests/sayso/transitions/test_execution.py",)
FREEZES = (
    "tests/sayso/transitions/test_freezing.py",
    "tests/sayso/transitions/test_due.py",
    "tests/sayso/transitions/test_doubted_time.py",
)
STORE = (
    "tests/service/store/suspensions/test_commit_writes.py",
    "tests/service/store/suspensions/test_saving.py",
    "tests/service/store/suspensions/test_commits.py",
)
DESK = (
    "tests/service/desk/test_final_words.py",
    "tests/service/desk/test_desk.py",
    "tests/service/desk/test_freezing.py",
    "tests/service/desk/test_reasking.py",
    "tests/service/desk/test_worker_execution.py",
    "tests/service/desk/test_asks.py",
    "tests/service/desk/test_last_words.py",
)

ROUNDS = ("tests/service/store/suspensions/test_batches.py", "tests/workers/clock/test_precomputing.py")

GUARDED: dict[str, tuple[str, ...]] = {
    "sayso/records/suspensions.py": PAUSES + DRIVING + TABLE,
    "sayso/transitions/deciding.py": PAUSES + FREEZES + TABLE + OWNERS,
    "sayso/transitions/timing.py": PAUSES + FREEZES + TABLE,
    "sayso/transitions/sightings.py": PAUSES + TABLE,
    "sayso/transitions/closing.py": PAUSES + DRIVING + TABLE + OWNERS,
    "sayso/transitions/execution.py": DRIVING + FREEZES + TABLE + OWNERS,
    "sayso/transitions/freezing.py": FREEZES + TABLE[:1] + DESK[2:3],
    "sayso/runner/revalidation.py": ("tests/sayso/runner/test_revalidation.py",),
    "sayso/transitions/due.py": (
        "tests/sayso/transitions/test_due.py",
        "tests/sayso/transitions/test_doubted_time.py",
        "tests/service/desk/test_freezing.py",
        "tests/service/desk/test_desk.py",
    ),
    "service/desk/desk.py": DESK,
    "service/desk/worker_execution.py": ("tests/workers/resume/test_outages.py", *DESK),
    "service/store/suspensions/saving.py": STORE + DESK,
    "service/desk/scheduling.py": (*DESK, *ROUNDS),
    "service/store/suspensions/batches.py": ROUNDS,
    "service/store/suspensions/commits.py": STORE + DESK,
    "service/store/lua/commit.lua": STORE + DESK,
}
"""Where guards stand, and which tests must notice when one is gone."""


_REFUSED = "what is taken for known wrongly the commit refuses, and then it is looked at"

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "sayso/transitions/deciding.py",
        "guard",
        "item.terms.quorum.approve == 1",
    ): "the count that follows comes to the same",
    ("sayso/transitions/execution.py", "part", "held is not None"): "whatever is being resumed has a lease",
    ("sayso/transitions/execution.py", "part", "record.lease is not None"): "whatever was resumed had a lease",
    ("sayso/transitions/execution.py", "part", "record.due_at_ms is None"): "whatever is decided is on the schedule",
    ("sayso/transitions/execution.py", "filter", "item.outcome is not None"): "whatever is leased has all its outcomes",
    ("sayso/transitions/execution.py", "filter", "intent.item_id is not None"): "no item has no name",
    ("sayso/transitions/execution.py", "guard", "not begun"): "where nothing was under way, nothing is noted",
    ("sayso/transitions/execution.py", "part", "item.permit is None"): "what is under way has spent its leave",
    ("sayso/transitions/closing.py", "part", "outcome is None"): "only of decided pauses is it asked",
    ("sayso/runner/revalidation.py", "part", "item.outcome is None"): "only what has leave to run comes so far",
    ("sayso/transitions/due.py", "part", "held"): "a time that calls for nothing more is never over",
    ("sayso/transitions/due.py", "part", "after.status is Status.PENDING"): "what is held is open",
    ("service/store/suspensions/saving.py", "part", "seen is not None"): "without a key nothing is looked up under one",
    ("service/store/suspensions/saving.py", "guard", "found.record is not None"): "reading it again comes to the same",
    ("service/store/suspensions/saving.py", "guard", "passed_ms > _READING_MS"): _REFUSED,
    ("service/store/suspensions/saving.py", "part", "passed_ms > _READING_MS"): _REFUSED,
    ("service/store/suspensions/saving.py", "edge", "passed_ms > _READING_MS"): _REFUSED,
    ("service/store/suspensions/saving.py", "guard", "not new or passed_ms > _READING_MS"): _REFUSED,
    ("service/store/suspensions/saving.py", "part", "not new"): _REFUSED,
    (
        "service/store/suspensions/saving.py",
        "edge",
        "len(self._recent) > _REMEMBERED",
    ): "one more or less is remembered",
    ("service/desk/desk.py", "guard", "not known"): "without freezes nothing was lost, and nothing is in doubt",
    (
        "service/store/suspensions/saving.py",
        "guard",
        "record.due_at_ms is not None and record.due_at_ms <= now_ms",
    ): "it saves a commit that cannot go through",
    (
        "service/store/suspensions/saving.py",
        "part",
        "record.due_at_ms is not None",
    ): "whatever is ready is on the schedule",
    (
        "service/store/suspensions/saving.py",
        "edge",
        "record.due_at_ms <= now_ms",
    ): "it saves a commit that cannot go through",
    (
        "service/store/suspensions/saving.py",
        "part",
        "record.due_at_ms <= now_ms",
    ): "where it is looked at too often, it is slow",
    ("service/store/suspensions/batches.py", "part", "at_ms is None"): "whatever waits is on the schedule",
    ("service/store/suspensions/batches.py", "guard", "not commits"): "a script without changes does nothing",
    (
        "service/desk/worker_execution.py",
        "part",
        "taken.record.lease is None",
    ): "a run that was just leased has a lease",
}
"""Guards without which nothing changes, and why: they keep the types honest, or save time."""


class Mutation(NamedTuple):
    """One place in one file, what stands there, and what stands there without the guard."""

    file: str
    line: int
    kind: str
    start: int
    snippet: str
    broken: str

    @property
    def name(self) -> str:
        """Which guard of which file, in one line."""
        return f"{self.file}:{self.line} {self.kind}: {self.words[:80]}"

    @property
    def words(self) -> str:
        """What stands there, in one line: it stays the same when lines move."""
        return " ".join(self.snippet.split())

    def apply(self, source: str) -> str:
        """Return the source without the guard."""
        return source[: self.start] + self.broken + source[self.start + len(self.snippet) :]


def find_mutations(file: str) -> list[Mutation]:
    """Return every guard of a file, in order."""
    source = (ROOT / file).read_text()
    if file.endswith(".lua"):
        return [*_find_in_script(file, source)]
    return sorted(set(_Finder(file, source).find()), key=lambda one: (one.start, one.kind))


class _Finder:
    """Scheduling through one file. Positions are those of characters, for what is cut out is text."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def find(self) -> Iterator[Mutation]:
        for node in ast.walk(ast.parse(self._source)):
            if isinstance(node, ast.If):
                yield self._replace(node.test, "guard", "False" if _refuses(node) else "True")
                yield from self._parts(node.test)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _checks(node.value):
                yield self._replace(node, "check", "pass")
            elif isinstance(node, ast.comprehension):
                for test in node.ifs:
                    yield self._replace(test, "filter", "True")
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                yield from self._edge(node)

    def _parts(self, test: ast.expr) -> Iterator[Mutation]:
        if isinstance(test, ast.BoolOp):
            neutral = "True" if isinstance(test.op, ast.And) else "False"
            for value in test.values:
                yield self._replace(value, "part", neutral)

    def _edge(self, node: ast.Compare) -> Iterator[Mutation]:
        """A moment, a count or a limit: the same comparison, one further."""
        edges = {ast.GtE: ">", ast.Gt: ">=", ast.Lt: "<=", ast.LtE: "<"}
        other = edges.get(type(node.ops[0]))
        if other is not None:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield self._replace(node, "edge", f"{left} {other} {right}")

    def _replace(self, node: ast.expr | ast.stmt, kind: str, broken: str) -> Mutation:
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or 0, node.end_col_offset or 0)
        return Mutation(self._file, node.lineno, kind, start, self._source[start:end], broken)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _find_in_script(file: str, source: str) -> Iterator[Mutation]:
    """A script has few guards: each `if`, and each part of one."""
    for found in re.finditer(r"^ *if (.+) then$", source, re.MULTILINE):
        line = source.count("\n", 0, found.start()) + 1
        parts = found[1].split(" or ")
        for part in {found[1], *(parts if len(parts) > 1 else ())}:
            start = found.start(1) + found[1].index(part)
            yield Mutation(file, line, "guard" if part == found[1] else "part", start, part, "false")


def _refuses(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue) and not node.orelse


def _checks(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name.lstrip("_").startswith(("check", "expect"))
