"""`make frameworks`: runs every scenario with the frameworks' real packages, and builds the support table.

`python -m tests.frameworks [framework ...] [--write | --lowest]` creates missing environments, runs the scenarios,
prints the table and compares it with `docs/frameworks.md`. With `--write` it updates the page. With `--lowest` it runs
those without a server, with the oldest packages that the SDK and its extras allow.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from service.core.settings import CHECKOUT
from tests.frameworks.kinds import AGUI, AGUI_AGENTS, ENVIRONMENTS, KINDS, MCP, SCENARIOS, SDK, TRPC_AGENT_GO
from tests.frameworks.tables import replace_table, write_table
from tests.shares import take_share

OTHERS = (MCP, AGUI, SDK)
EVERY = (*(kind.name for kind in KINDS), *OTHERS, TRPC_AGENT_GO)

PAGE = CHECKOUT / "docs" / "frameworks.md"
LOCKS = CHECKOUT / "tests" / "frameworks" / "locks"
LOWEST = LOCKS / "lowest"
UV = CHECKOUT / ".venv" / "bin" / "uv"


def main() -> int:
    """Return 0 if every scenario passed and the page has the resulting table."""
    names = [arg for arg in sys.argv[1:] if not arg.startswith("--")] or EVERY
    if "--lowest" in sys.argv:
        return run_lowest(take_share(name for name in names if find_lowest(name).exists()))
    names = take_share(names)
    kinds = [kind for kind in KINDS if kind.name in names]
    others = [name for name in OTHERS if name in names]
    go = [name for name in names if name == TRPC_AGENT_GO]  # builds its server itself
    agents = AGUI_AGENTS if AGUI in others else ()
    for environment in [*sorted({kind.environment for kind in kinds if kind.environment}), *others, *agents]:
        make_environment(environment)
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run_scenarios([*(kind.name for kind in kinds), *others, *go], report)
        outcomes = read_report(report)
    table = write_table(kinds, outcomes)
    print(table if kinds else "")
    if len(kinds) < len(KINDS):
        return code
    before = PAGE.read_text(encoding="utf-8")
    after = replace_table(before, table)
    if "--write" in sys.argv:
        PAGE.write_text(after, encoding="utf-8")
    elif before != after:
        print(f"{PAGE.name} has another table. Check why, then run: python -m tests.frameworks --write")
        return 1
    return code


def run_lowest(names: Sequence[str]) -> int:
    """Run the scenarios without a server with the oldest packages that the SDK and its extras allow."""
    for environment in sorted({find_lowest(name).stem for name in names}):
        make_environment(environment, LOWEST, f"lowest_{environment}")
    return run_scenarios(names, lowest=True)


def find_lowest(name: str) -> Path:
    """Return where the lock file of the oldest packages of a framework is, if it has any."""
    environments = {kind.name: kind.environment for kind in KINDS}
    return LOWEST / f"{environments.get(name, name)}.lock"


def make_environment(name: str, locks: Path = LOCKS, folder: str = "") -> None:
    """Install a lock file into its own environment, unless it is installed."""
    lock, home = locks / f"{name}.lock", ENVIRONMENTS / (folder or name)
    installed = home / "installed.lock"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return
    print(f"Installing {lock.relative_to(CHECKOUT)}", flush=True)
    python = home / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", home], check=True)
    install = ["pip", "install", "--quiet", "--no-deps", "--python", str(python)]
    subprocess.run([UV, *install, "--require-hashes", "-r", str(lock)], check=True)
    installed.write_bytes(lock.read_bytes())


def run_scenarios(names: Sequence[str], report: Path | None = None, *, lowest: bool = False) -> int:
    """Run the tests, or with `AGAIN=1` alone those that failed before; write their report, if asked for."""
    again = ("--last-failed", "--last-failed-no-failures", "none", "-n", "0")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/frameworks",
        "-q",
        "-rfEs",  # failures and errors too, by which `.ci/run` knows what to run again
        *(again if os.environ.get("AGAIN") else ("-n", "2", "--dist", "loadgroup")),
        *("-o", "cache_dir=.pytest_cache/frameworks"),
        *([f"--junitxml={report}"] if report else []),
    ]
    environ = {**os.environ, "FRAMEWORKS": ",".join(names), "FRAMEWORKS_LOWEST": "1" if lowest else ""}
    return subprocess.run(command, cwd=CHECKOUT, env=environ, check=False).returncode


def read_report(report: Path) -> dict[tuple[str, str], bool]:
    """Return which scenarios of which frameworks passed."""
    outcomes: dict[tuple[str, str], bool] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - written by pytest
        name, _, _group = str(case.get("name")).partition("@")
        scenario, _, kind = name.removeprefix("test_").partition("[")
        if scenario in SCENARIOS:
            outcomes[kind.rstrip("]"), scenario] = not list(case)
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
