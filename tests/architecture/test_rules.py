"""Rules for the structure of the repository; `CONTRIBUTING.md` lists them."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import sayso.errors
from sayso.core.records.events import EventType
from sayso.core.transitions.legal import LEGAL
from sayso.errors import SaysoError
from service.core.jobs import JOBS
from service.core.store.keys import TenantKeys
from tests.architecture.sources import PACKAGES, ROOT, modules, place


@pytest.mark.parametrize("path", modules(), ids=place)
def test_module_opens_with_a_docstring(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        docstring = ast.get_docstring(ast.parse(text)) or ""
        assert docstring.partition("\n")[0].rstrip().endswith((".", ":", "?")), "open the module with a sentence"


def test_public_definition_has_a_docstring() -> None:
    missing = [
        f"{place(path)}:{node.name}"
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and not any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
    ]
    assert not missing


def test_only_the_clock_reads_the_time() -> None:
    clock_reads = re.compile(
        r"\btime\.(time|monotonic|perf_counter)(_ns)?\(|datetime\.(now|utcnow|today)\(|uuid\.uuid|uuid[147]\("
    )
    found = [
        f"{place(path)}:{number}"
        for path in modules()
        if path != ROOT / "sayso" / "core" / "clock.py"
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if clock_reads.search(line)
    ]
    assert not found


def test_source_has_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b|coming soon|pytest\.mark\.(skip|xfail)\b")
    found = [
        f"{place(path)}:{number}"
        for path in [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if marks.search(line)
    ]
    assert not found


def test_tests_do_not_sleep() -> None:
    sleeps = re.compile(r"\btime\.sleep\(|asyncio\.sleep\([0-9.]*[1-9]")
    found = [
        f"{place(path)}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if sleeps.search(line) and not re.search("# between (looks|polls)", line)
    ]
    assert not found


def test_broad_except_does_something() -> None:
    silent = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
                if broad and all(isinstance(step, ast.Pass | ast.Continue) for step in node.body):
                    silent.append(f"{place(path)}:{node.lineno}")
    assert not silent


def test_every_error_has_a_default_message_of_its_own() -> None:
    for name, error in vars(sayso.errors).items():
        if inspect.isclass(error):
            assert issubclass(error, SaysoError), f"{name} is not a SaysoError"
            assert "__doc__" in vars(error), f"{name} has no docstring"
            assert error().message.endswith("."), f"the default message of {name} is not a sentence"


def test_job_names_can_be_imported() -> None:
    for name in JOBS:
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))


def test_commit_script_header_lists_every_key() -> None:
    header = (ROOT / "service" / "core" / "store" / "lua" / "commit.lua").read_text().partition("]]")[0]
    keys = TenantKeys("t")
    written = [keys.suspension("s"), keys.run("r"), keys.trail("r"), keys.state("r"), keys.idempotency("a", "k")]
    written += [keys.head("r"), keys.external_events("r"), keys.external_events_seen("r")]
    written += [
        keys.schedule,
        keys.inbox,
        keys.open,
        keys.buckets,
        keys.bucket("b"),
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


def test_every_event_type_is_emitted() -> None:
    sources = "\n".join(path.read_text() for path in modules() if path.name != "events.py")
    assert [kind for kind in EventType if f"EventType.{kind.name}" not in sources] == []


def test_legal_table_lists_every_transition() -> None:
    verbs = {"suspend", "decide", "remind", "escalate", "expire", "cancel", "lease", "redeem", "settle"}
    assert verbs | {"suspend_again", "give_up"} <= set(LEGAL)


@pytest.mark.parametrize(
    ("where", "line", "broken"),
    [
        ("sayso/core/transitions/deciding.py", "import redis", "sayso imports no server packages"),
        ("service/core/desk/desk.py", "import workers.clock.ticks", "Imports run one way"),
    ],
)
def test_forbidden_import_breaks_its_contract(tmp_path: Path, where: str, line: str, broken: str) -> None:
    for path in modules():
        copy = tmp_path / place(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    breached = tmp_path / where
    breached.write_text(f"{breached.read_text()}\n{line}\n")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert re.search(rf"{broken}.*BROKEN", result.stdout), result.stdout


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checking count too: they show that a module cannot be understood alone."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = TopologicalSorter(imports)
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")
