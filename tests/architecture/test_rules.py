"""The house rules that a machine can hold. `CONTRIBUTING.md` has the others."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sayso.errors
from sayso.errors import SaysoError
from sayso.records.events import EventType
from sayso.transitions.table import LEGAL
from service.jobs import JOBS
from service.store.keys import TenantKeys

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("sayso", "service", "workers", "launch", "demo")
MODULE_LINES = 400
FUNCTION_LINES = 60
FUNCTION_LINES_SOFT = 40
LONG_FUNCTIONS = 0.04
MEDIAN_LINES = 10
BANNED_NAMES = re.compile(r"(Manager|Helper|Utils?|Processor|Handler)$|^(process|handle|utils?|helpers?|misc|common)$")


def modules() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code: a docstring is no burden."""
    body = node.body
    if ast.get_docstring(node) is not None:
        body = body[1:]
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_small_and_begins_with_its_promise(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    if text.strip():
        promise = ast.get_docstring(ast.parse(text))
        assert promise, "the first thing in a module is what it promises"
        assert promise.splitlines()[0].rstrip().endswith((".", ":", "?")), "a promise is a sentence"


def test_functions_are_short() -> None:
    sizes = {f"{path.relative_to(ROOT)}:{node.name}": lines_of(node) for path, node in functions()}
    assert not {name: size for name, size in sizes.items() if size > FUNCTION_LINES}
    over_soft = [name for name, size in sizes.items() if size > FUNCTION_LINES_SOFT]
    assert len(over_soft) <= LONG_FUNCTIONS * len(sizes), over_soft
    assert sorted(sizes.values())[len(sizes) // 2] <= MEDIAN_LINES


def test_what_is_public_says_what_it_promises() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and not any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
    ]
    assert not missing


def test_names_are_the_fields_own_words() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and BANNED_NAMES.search(node.name)
    ]
    files = [str(path.relative_to(ROOT)) for path in modules() if BANNED_NAMES.search(path.stem)]
    assert not named + files


def test_only_the_clock_asks_the_machine_for_the_time() -> None:
    clock_reads = re.compile(
        r"\btime\.(time|monotonic|perf_counter)(_ns)?\(|datetime\.(now|utcnow|today)\(|uuid\.uuid|uuid[147]\("
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in modules()
        if path != ROOT / "sayso" / "clock.py"
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if clock_reads.search(line)
    ]
    assert not found


def test_nothing_is_left_unfinished() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b|coming soon|pytest\.mark\.(skip|xfail)\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if marks.search(line)
    ]
    assert not found


def test_tests_wait_for_conditions_and_never_just_sleep() -> None:
    sleeps = re.compile(r"\btime\.sleep\(|asyncio\.sleep\([0-9.]*[1-9]")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if sleeps.search(line) and "# between looks" not in line
    ]
    assert not found


def test_no_error_is_swallowed_without_a_word() -> None:
    silent = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
                if broad and all(isinstance(step, ast.Pass | ast.Continue) for step in node.body):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not silent


def test_every_error_is_drawn_in_the_tree_and_speaks_for_itself() -> None:
    drawn = inspect.getdoc(sayso.errors) or ""
    for name, error in vars(sayso.errors).items():
        if inspect.isclass(error) and issubclass(error, SaysoError):
            assert re.search(rf"\b{name}\b", drawn), f"{name} is missing in the tree"
            assert error().message.endswith("."), f"{name} has no sentence of its own"
            root, place = (
                next(line for line in drawn.splitlines() if re.search(rf"\b{word}\b", line)).index(word)
                for word in ("SaysoError", name)
            )
            depth = len(error.__mro__) - len(SaysoError.__mro__)
            assert (place - root) // 4 == depth, f"{name} is drawn at the wrong depth"


def test_every_job_can_be_imported_by_its_name() -> None:
    for name in JOBS:
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_scripts_header_names_every_key() -> None:
    header = (ROOT / "service" / "store" / "lua" / "commit.lua").read_text().partition("]]")[0]
    keys = TenantKeys("t")
    written = [keys.suspension("s"), keys.run("r"), keys.trail("r"), keys.state("r"), keys.idempotency("a", "k")]
    written += [keys.head("r"), keys.told("r"), keys.external_events_seen("r")]
    written += [
        keys.schedule,
        keys.inbox,
        keys.open,
        keys.open_of("o"),
        keys.pace,
        keys.pace_of("o"),
        keys.decided,
        keys.ready,
        keys.runs("failed"),
        keys.runs_of("o"),
        keys.owners,
        keys.definitions,
        keys.instance("i"),
        keys.gone("i"),
        keys.delivery("e"),
        keys.deliveries,
    ]
    for key in written:
        stem = key.removeprefix(keys.prefix).split(":")[0]
        assert re.search(rf"sayso:{{t}}:{re.escape(stem)}\b", header), key


def test_every_kind_of_event_is_told_by_somebody() -> None:
    told = "\n".join(path.read_text() for path in modules() if path.name != "events.py")
    assert [kind for kind in EventType if f"EventType.{kind.name}" not in told] == []


def test_the_table_of_steps_names_every_verb_of_the_record() -> None:
    verbs = {"suspend", "decide", "remind", "escalate", "expire", "cancel", "lease", "redeem", "settle"}
    assert verbs | {"suspend_again", "give_up"} <= set(LEGAL)


@pytest.mark.parametrize(
    ("where", "line", "broken"),
    [
        ("sayso/transitions/deciding.py", "import redis", "The language needs no server"),
        ("service/desk/desk.py", "import workers.clock.ticks", "Imports run one way"),
    ],
)
def test_a_breach_of_the_import_rule_is_caught(tmp_path: Path, where: str, line: str, broken: str) -> None:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    breached = tmp_path / where
    breached.write_text(f"{breached.read_text()}\n{line}\n")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert re.search(rf"{broken}.*BROKEN", result.stdout), result.stdout
