"""The types of the SDK as pyright reads them in a strict project. mypy reads those of the wheel in `test_packaging`."""

import json
import subprocess
import sys
from pathlib import Path

from service.core.settings import CHECKOUT
from tests.launch.projects import WRONG, write_project

PYRIGHT = Path(sys.executable).with_name("basedpyright")


def test_pyright_finds_only_the_wrong_calls_of_a_strict_project(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    strict = {"typeCheckingMode": "strict", "extraPaths": [str(CHECKOUT)], "include": ["."]}
    (project / "pyrightconfig.json").write_text(json.dumps(strict))
    check = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable, "-p", str(project)]
    done = subprocess.run(check, cwd=project, capture_output=True, text=True, check=False)
    faults = json.loads(done.stdout)["generalDiagnostics"]
    lines = [(Path(fault["file"]).name, fault["range"]["start"]["line"]) for fault in faults]
    assert sorted({*lines}) == [("wrong.py", 5 + place) for place in range(len(WRONG))], faults
