"""`make frameworks`: every scenario with every framework's real packages, and the support table that comes of it.

`python -m tests.frameworks [row ...] [--write]` makes the environments that are missing, runs the scenarios, prints the
table and holds it against the one in `docs/frameworks.md`; with `--write` it is written there.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from service.settings import CHECKOUT
from tests.frameworks.kinds import ENVIRONMENTS, KINDS, MCP, SCENARIOS
from tests.frameworks.tables import replace_table, write_table

PAGE = CHECKOUT / "docs" / "frameworks.md"
LOCKS = CHECKOUT / "tests" / "frameworks" / "locks"
UV = CHECKOUT / ".venv" / "bin" / "uv"


def main() -> int:
    """Return 0 when every scenario went well and the page says what was measured."""
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    kinds = [one for one in KINDS if not wanted or one.name in wanted]
    servers = [MCP] if not wanted or MCP in wanted else []
    for environment in [*sorted({one.environment for one in kinds if one.environment}), *servers]:
        make_environment(environment)
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run_scenarios([*(one.name for one in kinds), *servers], report)
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
        print(f"{PAGE.name} has another table. Look why, then run: python -m tests.frameworks --write")
        return 1
    return code


def make_environment(name: str) -> None:
    """Install a framework's lock file into an environment of its own, unless that very file is installed already."""
    lock, home = LOCKS / f"{name}.lock", ENVIRONMENTS / name
    installed = home / "installed.lock"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return
    print(f"Installing {lock.relative_to(CHECKOUT)}", flush=True)
    python = home / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", home], check=True)
    install = ["pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(lock)]
    subprocess.run([UV, *install], check=True)
    installed.write_bytes(lock.read_bytes())


def run_scenarios(names: list[str], report: Path) -> int:
    """Run the tests and have them write down how each ended."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/frameworks",
        "-q",
        f"--junitxml={report}",
        "-p",
        "no:cacheprovider",
    ]
    environ = {**os.environ, "FRAMEWORKS": ",".join(names)}
    return subprocess.run(command, cwd=CHECKOUT, env=environ, check=False).returncode


def read_report(report: Path) -> dict[tuple[str, str], bool]:
    """Return which scenario of which framework went well."""
    outcomes: dict[tuple[str, str], bool] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest has just written it
        scenario, _, kind = str(case.get("name")).removeprefix("test_").partition("[")
        if scenario in SCENARIOS:
            outcomes[kind.rstrip("]"), scenario] = not list(case)
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
