"""Tests of modules of the user that have the name of a framework."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.settings import CHECKOUT

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
{before}
from sayso.guarding.frameworks import guard_imports
guard_imports()
guard_imports()
import {name}
print({name}.MARK)
"""


@pytest.mark.parametrize("imported", ["before", "after"])
@pytest.mark.parametrize(("name", "warned"), [("agents", False), ("afk", True)])
def test_module_with_the_name_of_a_framework_is_imported(
    tmp_path: Path, name: str, warned: bool, imported: str
) -> None:
    """A module is known not to be OpenAI's by its distribution, which is not installed here. AFK has none."""
    (tmp_path / f"{name}.py").write_text("MARK = 'ours'\n")
    before = f"import {name}" if imported == "before" else ""
    program = PROGRAM.format(folder=str(tmp_path), name=name, before=before)
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr
    assert (f"Sayso does not know where {name} of this version executes tools" in done.stderr) is warned
    assert warned or done.stderr == ""
