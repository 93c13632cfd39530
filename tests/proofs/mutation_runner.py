"""A process that runs collected tests against changed code, each time in a fork.

`python -m tests.proofs.mutation_runner` reads one JSON object per line: a file, its source without one guard, and the
tests to run. It replies with the exit code. The file itself stays unchanged: the fork replaces the code of the
module's functions.
"""

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import hypothesis
import pytest

from tests.proofs.mutations import GUARDED, ROOT, Mutation

OPTIONS = ("-q", "-s", "--assert=plain", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")
TIMEOUT_S = 60
SURVIVED, KILLED, FAILED_TO_RUN = 0, 1, 3


class MutationRunner:
    """The client of a runner process."""

    def __init__(self) -> None:
        own = ("PYTEST_", "SHARE")  # of the process that asks; the runner always has all tests
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proofs.mutation_runner"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, mutation: Mutation | None, tests: tuple[str, ...]) -> int:
        """Return the code of the tests against one mutation, or against the unchanged source."""
        request: dict[str, Any] = {"file": None, "tests": tests}
        if mutation is not None:
            request |= {"file": mutation.file, "mutated": mutation.apply((ROOT / mutation.file).read_text())}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["code"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def open_mutation_runner() -> Iterator[MutationRunner]:
    """Open a mutation runner for the duration of the context."""
    runner = MutationRunner()
    try:
        yield runner
    finally:
        runner.close()


class ForkingPlugin:
    """A pytest plugin that replaces the test loop: each request runs its tests in a fork."""

    def __init__(self, replies: int) -> None:
        self._replies = replies
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failed test or setup."""
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Reply to requests until the end of the input."""
        by_file = {file: [one for one in session.items if one.nodeid.startswith(file)] for file in _all_tests()}
        _start_server(session)
        for line in sys.stdin:
            request = json.loads(line)
            items = [one for file in request["tests"] for one in by_file[file]]
            code = self._fork(request, items)
            os.write(self._replies, json.dumps({"code": code}).encode() + b"\n")
        return True

    def _fork(self, request: dict[str, Any], items: list[pytest.Item]) -> int:
        """Return the code of a forked run. A timeout counts as killed."""
        child = os.fork()
        if child == 0:
            self._run_child(request, items)
        status = os.waitpid(child, 0)[1]
        timed_out = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        return KILLED if timed_out else os.waitstatus_to_exitcode(status)

    def _run_child(self, request: dict[str, Any], items: list[pytest.Item]) -> NoReturn:
        signal.alarm(TIMEOUT_S)
        code = FAILED_TO_RUN
        try:
            with tempfile.TemporaryDirectory() as folder:
                if request["file"] is not None:
                    _replace_code(request["file"], request["mutated"], Path(folder))
                code = self._run(items)
        finally:
            os._exit(code)

    def _run(self, items: list[pytest.Item]) -> int:
        """Run the tests until one fails. None is marked as last: the server belongs to the parent process."""
        assert items, "there are no such tests"
        for place, item in enumerate(items):
            following = items[(place + 1) % len(items)]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return KILLED
        return SURVIVED


def main() -> None:
    """Collect all tests, then reply to requests."""
    once = hypothesis.settings(derandomize=True, phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate))
    hypothesis.settings.register_profile("once", once)
    hypothesis.settings.load_profile("once")
    for file in GUARDED:
        if file.endswith(".py"):
            importlib.import_module(_module_name(file))
    replies = os.dup(sys.stdout.fileno())
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())
    # at once, since the end of an interpreter with this many tests takes seconds
    os._exit(pytest.main([*OPTIONS, *_all_tests()], plugins=[ForkingPlugin(replies)]))


def _all_tests() -> list[str]:
    return sorted({test for tests in GUARDED.values() for test in tests})


def _start_server(session: pytest.Session) -> None:
    """Run one test that needs the store, so that its server runs for all forks."""
    first = next(one for one in session.items if "store_url" in getattr(one, "fixturenames", ()))
    folder = first.nodeid.split("/")[1]
    other = next(one for one in session.items if one.nodeid.split("/")[1] != folder)
    first.config.hook.pytest_runtest_protocol(item=first, nextitem=other)


def _replace_code(file: str, source: str, folder: Path) -> None:
    if not file.endswith(".py"):
        _replace_script(file, source, folder)
        return
    module = importlib.import_module(_module_name(file))
    before, after = (dict(_functions(compile(text, file, "exec"))) for text in ((ROOT / file).read_text(), source))
    changed = [name for name in before if before[name] != after[name]]
    assert changed, "the changed source has the same functions"
    for name in changed:
        _find(module, name).__code__ = after[name]


def _replace_script(file: str, source: str, folder: Path) -> None:
    """Point the store to a folder with the changed script."""
    scripts = importlib.import_module("service.core.store.lua")
    for script in (ROOT / file).parent.iterdir():
        (folder / script.name).write_text(source if script.name == Path(file).name else script.read_text())
    setattr(scripts, "_FOLDER", folder)  # noqa: B010  mypy does not know the module


def _functions(code: CodeType, within: str = "") -> Iterator[tuple[str, CodeType]]:
    """Yield every function of a module and its classes, with its nested functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            name = f"{within}{constant.co_name}"
            if constant.co_flags & 2:  # it has locals of its own: a function, not the body of a class
                yield name, constant
            else:
                yield from _functions(constant, f"{name}.")


def _find(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    found = getattr(found, "__func__", getattr(found, "fget", found))
    found = inspect.unwrap(getattr(found, "func", found))
    assert isinstance(found, FunctionType), name
    return found


def _module_name(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


if __name__ == "__main__":
    main()
