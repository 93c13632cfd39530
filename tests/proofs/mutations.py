"""Mutations: the source of the product with one guard removed.

A guard is an `if` that refuses, returns or continues, a call of a check, a part of a condition, a filter, or the edge
of a range. They are found in the source, so a new guard is covered without a new entry here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


def find_file(name: str, *folders: str) -> str:
    """Return the path, from the root, of the only file below `folders` whose path ends with `name`."""
    found = [path for folder in folders for path in (ROOT / folder).rglob(Path(name).name) if path.match(name)]
    assert len(found) == 1, f"{name}: {len(found)} files match"
    return str(found[0].relative_to(ROOT))


def _source(name: str) -> str:
    return find_file(name, "sayso", "service")


def _tests(names: str) -> tuple[str, ...]:
    return tuple(find_file(f"{name}.py", "tests") for name in names.split())


TABLE = _tests("transitions/test_guards transitions/test_permits records/test_suspensions")
CLIENT = _tests("transitions/test_client_execution")
EXECUTION = _tests("transitions/test_execution")
DECIDING = _tests(
    "transitions/test_deciding transitions/test_decision_checks transitions/test_deadlines test_decision_data"
    " test_coverage transitions/test_delegates transitions/test_numbers transitions/test_sightings test_doubted_time"
    " transitions/test_requester_notices transitions/test_each_of transitions/test_step_up transitions/test_changes"
    " transitions/test_stages"
)
PREVIEWS = _tests("transitions/test_previewing runner/test_revalidation_effects")
UNDO = _tests("transitions/test_undo transitions/test_voiding transitions/test_confirming")
OUTSIDERS = _tests("transitions/test_outsiders")
REVERSALS = _tests("transitions/test_reversing")
FREEZES = _tests("transitions/test_freezing test_due test_doubted_time")
COUNTERS = _tests("counters/test_counting")
HANDING = _tests("transitions/test_handing desk/test_handing resume/test_handed")
STORE = _tests("test_commit_writes test_saving test_commits permissions/test_counters desk/test_handing")
BATCHES = _tests("test_batches test_precomputing")
DESK = _tests(
    "desk/test_memory desk/test_rules_and_edits desk/test_desk desk/test_freezing test_reasking test_worker_execution"
    " test_asks desk/test_late_items permissions/test_mandating desk/test_assessors"
)

GUARDED: dict[str, tuple[str, ...]] = {
    _source(name): tests
    for name, tests in {
        "auth/codes.py": _tests("codes/test_apps codes/test_signing_in"),
        "records/suspensions.py": DECIDING
        + EXECUTION
        + TABLE
        + REVERSALS
        + _tests("runner/test_progress transitions/test_noting"),
        "records/freezes.py": FREEZES
        + TABLE
        + _tests("desk/test_freezing records/test_revocations records/test_clock_readings"),
        "transitions/legal.py": DECIDING + EXECUTION + TABLE,
        "transitions/deciding.py": DECIDING + FREEZES + TABLE + CLIENT + UNDO + PREVIEWS + OUTSIDERS,
        "transitions/decision_checks.py": DECIDING + FREEZES + TABLE + CLIENT + UNDO + OUTSIDERS + REVERSALS,
        "transitions/quorum.py": DECIDING + TABLE + UNDO + _tests("transitions/test_drills"),
        "transitions/permits.py": DECIDING
        + EXECUTION
        + TABLE
        + CLIENT
        + UNDO
        + PREVIEWS
        + _tests("transitions/test_early_results"),
        "transitions/inquiring.py": TABLE
        + UNDO
        + _tests("transitions/test_inquiring transitions/test_claiming transitions/test_noting")
        + PREVIEWS,
        "transitions/superseding.py": _tests(
            "transitions/test_changes transitions/test_superseding test_repeated_keys"
        ),
        "transitions/outsiders.py": TABLE + OUTSIDERS,
        "transitions/deadlines.py": DECIDING
        + FREEZES
        + TABLE
        + UNDO
        + _tests("transitions/test_deliveries")
        + OUTSIDERS,
        "transitions/deliveries.py": TABLE
        + _tests("transitions/test_deliveries transitions/test_forwarding transitions/test_stages")
        + OUTSIDERS,
        "transitions/closing.py": DECIDING
        + EXECUTION
        + TABLE
        + CLIENT
        + UNDO
        + PREVIEWS
        + _tests("transitions/test_typed_secrets"),
        "transitions/execution.py": EXECUTION + FREEZES + TABLE + CLIENT + COUNTERS + HANDING + PREVIEWS,
        "transitions/freezing.py": FREEZES + TABLE + UNDO + REVERSALS + _tests("desk/test_freezing"),
        "transitions/due.py": _tests("test_due test_doubted_time test_restoring desk/test_freezing desk/test_desk"),
        "runner/revalidation.py": _tests(
            "runner/test_revalidation runner/test_revalidation_counters runner/test_revalidation_times"
            " runner/test_revalidation_mandates runner/test_kept_judgements runner/test_revalidation_effects"
        ),
        "desk/suspending.py": DESK,
        "desk/reviewing.py": DESK + _tests("codes/test_deciding passkeys/test_deciding"),
        "desk/changes.py": DESK + _tests("api/test_undo api/test_requesters"),
        "desk/worker_execution.py": _tests("test_outages desk/test_handing resume/test_handed") + DESK,
        "desk/scheduling.py": DESK + BATCHES + _tests("api/test_undo"),
        "suspensions/saving.py": STORE + DESK,
        "suspensions/batches.py": BATCHES,
        "suspensions/commits.py": STORE + DESK + _tests("resume/test_previews"),
        "lua/commit.lua": STORE + DESK,
    }.items()
}
"""The files with guards, and the tests that must fail when one guard is removed."""

_REFUSED = "the commit refuses a wrong assumption, and the record is then read"
_SAVES_TIME = "it avoids a commit that would be refused"

_EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "records/freezes.py": {
        ("guard", "key.predecessor_id is not None"): "no key has the id None",
        ("part", "key.ends_at_ms is None"): "a key with a successor was rotated, so it has an end",
        ("edge", "passed_ms < 0"): "without time between two readings nothing ran ahead",
    },
    "transitions/closing.py": {
        ("filter", "item.outcome is not None"): "every item of a leased record has an outcome",
        ("part", "item.terms.secrets"): "a rule without secrets names none to redact",
        ("guard", "item.terms.secrets"): "a rule without secrets names none to redact",
        ("part", "given.value is not None"): "no value is no secret",
    },
    "transitions/quorum.py": {
        ("guard", "quorum.approve == 1 and not quorum.each_of"): "counting gives the same result"
    },
    "transitions/decision_checks.py": {
        (
            "guard",
            "type(by) is Actor and (groups, for_person) == (by.groups, by.for_person)",
        ): "an equal copy is no other actor",
    },
    "transitions/execution.py": {
        ("part", "held is not None"): "a resuming record has a lease",
        ("part", "record.lease is not None"): "a resumed record had a lease",
        ("part", "record.due_at_ms is None"): "a decided record has a due time",
        ("filter", "intent.item_id is not None"): "no item has the id None",
        ("guard", "not begun"): "without calls under way nothing is noted",
        ("part", "item.permit is None"): "the permit of a call under way is redeemed",
    },
    "transitions/permits.py": {
        ("part", "outcome is None"): "callers pass decided suspensions only",
        ("filter", "item.permit is not None"): "a lost start has a permit",
    },
    "transitions/deliveries.py": {
        ("check", 'check_step(record, "record_deliveries")'): "every status allows it",
        ("part", "item is None"): "an unknown item has no delivery",
        ("guard", "not moved"): "the item stays as it is",
    },
    "transitions/inquiring.py": {
        ("edge", "terms.extend_until_ms > terms.deadline_at_ms"): "a deadline at its end waits without moving"
    },
    "transitions/due.py": {
        ("part", "held"): "a record without a next moment is never due",
        ("part", "after.status is Status.PENDING"): "a held item is open",
    },
    "runner/revalidation.py": {
        ("part", "item.outcome is None"): "callers pass approved items only",
        ("guard", "not policy.remembering"): "rules without memory read no counters",
        ("filter", "not keeps_judgement(item, policy)"): "judging such a call again reads no counters",
        ("part", "ledger.policy.limits_start"): "without such rules the time of the start changes no denial",
    },
    "desk/suspending.py": {
        ("guard", "once is None or not saved.repeated"): "a suspension that is new stands as it is",
        ("part", "not saved.repeated"): "a suspension that is new stands as it is",
    },
    "desk/reviewing.py": {
        ("guard", "not known"): "without freezes no time is lost or in doubt",
        ("guard", "request.signed is None and request.code is None"): "it saves reading the record",
    },
    "desk/worker_execution.py": {("part", "leased.record.lease is None"): "a run that was just leased has a lease"},
    "suspensions/saving.py": {
        ("part", "seen is not None"): "without a key there is nothing to find",
        ("guard", "state.record is not None"): "reading again gives the same record",
        ("guard", "passed_ms > _READING_MS"): _REFUSED,
        ("part", "passed_ms > _READING_MS"): _REFUSED,
        ("edge", "passed_ms > _READING_MS"): _REFUSED,
        ("guard", "not new or passed_ms > _READING_MS"): _REFUSED,
        ("part", "not new"): _REFUSED,
        ("edge", "len(self._recent) > _REMEMBERED"): "the cache holds one entry more or less",
        ("guard", "record.due_at_ms is not None and record.due_at_ms <= now_ms"): _SAVES_TIME,
        ("part", "record.due_at_ms is not None"): "a ready record has a due time",
        ("edge", "record.due_at_ms <= now_ms"): _SAVES_TIME,
        ("part", "record.due_at_ms <= now_ms"): _SAVES_TIME,
    },
    "suspensions/batches.py": {
        ("part", "at_ms is None"): "a waiting record has a due time",
        ("guard", "not commits"): "a script without changes does nothing",
    },
}

EQUIVALENT = {(_source(name), *guard): why for name, guards in _EQUIVALENT.items() for guard, why in guards.items()}
"""Guards whose removal changes nothing, with the reason: they narrow a type or save time."""


class Mutation(NamedTuple):
    """One guard in one file: its text, and the text that replaces it."""

    file: str
    line: int
    kind: str
    start: int
    snippet: str
    broken: str

    @property
    def name(self) -> str:
        """Return file, line and guard."""
        return f"{self.file}:{self.line} {self.kind}: {self.text[:80]}"

    @property
    def text(self) -> str:
        """Return the guard on one line. It does not change when lines move."""
        return " ".join(self.snippet.split())

    def apply(self, source: str) -> str:
        """Return the source without the guard."""
        return source[: self.start] + self.broken + source[self.start + len(self.snippet) :]


def find_mutations(file: str) -> list[Mutation]:
    """Return the mutations of a file in source order."""
    source = (ROOT / file).read_text()
    if file.endswith(".lua"):
        return [*_find_in_script(file, source)]
    return sorted(set(_Finder(file, source).find()), key=lambda one: (one.start, one.kind))


class _Finder:
    """Find the guards of one Python file. Positions count characters."""

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
        """Replace `>` by `>=` and so on."""
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
    """Yield each `if` of a Lua script, and each part of its condition."""
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
