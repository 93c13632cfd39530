"""Tests of modules that have the name of a framework, or of one that has changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT

PROGRAM = """
{before}
from sayso.guarding.frameworks import guard_imports
guard_imports()
guard_imports()
import {name}
print({name}.MARK)
"""


def run(folder: Path, lines: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, in which modules of this folder can be imported."""
    program = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{lines}"
    return subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("imported", ["before", "after"])
@pytest.mark.parametrize(("name", "warned"), [("agents", False), ("afk", True)])
def test_module_with_the_name_of_a_framework_is_imported(
    tmp_path: Path, name: str, warned: bool, imported: str
) -> None:
    """A module is known not to be OpenAI's by its distribution, which is not installed here. AFK has none."""
    (tmp_path / f"{name}.py").write_text("MARK = 'ours'\n")
    before = f"import {name}" if imported == "before" else ""
    done = run(tmp_path, PROGRAM.format(name=name, before=before))
    assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr
    assert (f"Sayso does not know where {name} of this version executes tools" in done.stderr) is warned
    assert warned or done.stderr == ""


CHANGED = """
from sayso.errors import InvalidInput
from sayso.guarding.frameworks import guard_framework, guard_imports
guard_imports()
import parsimony_agents
try:
    guard_framework("parsimony_agents")
except InvalidInput as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    "tools",
    [
        "ToolResult = None\nclass Base:\n    async def __call__(self): ...\nclass Tool(Base): ...",
        "ToolResult = None\nclass Tool: ...",
        "Tool = ToolResult = None",
        "class Tool: ...",
    ],
)
def test_framework_with_another_structure_is_imported_but_not_gated(tmp_path: Path, tools: str) -> None:
    agent = tmp_path / "parsimony_agents" / "agent"
    agent.mkdir(parents=True)
    for file in (agent.parent / "__init__.py", agent / "__init__.py"):
        file.touch()
    (agent / "termination_tools.py").write_text("TERMINATION_TOOLS = ()")
    (agent.parent / "tools.py").write_text(tools)
    done = run(tmp_path, CHANGED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Sayso does not know where parsimony_agents of this version executes tools")
    assert "Sayso does not know where parsimony_agents of this version executes tools" in done.stderr


def test_missing_framework_is_reported_as_missing_beside_an_old_finder(tmp_path: Path) -> None:
    lines = """
from sayso.guarding.frameworks import guard_imports
sys.meta_path.append(type("OldFinder", (), {"find_module": lambda *_: None})())
guard_imports()
try:
    import afk
except ModuleNotFoundError as error:
    print(error)
"""
    assert run(tmp_path, lines).stdout == "No module named 'afk'\n"
