"""A channel written from the documentation page alone passes the contract of channels."""

import os
import re
import subprocess
import sys
from pathlib import Path

from service.core.settings import CHECKOUT

PAGE = CHECKOUT / "docs" / "channels-write-your-own.md"
BLOCK = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)

# The scratch files extend the packages of this repository, as if they were saved in it.
CONFTEST = """\
from pathlib import Path

import service.channels
import tests.fakes
import tests.service.channels.conformance

HERE = Path(__file__).parent
service.channels.__path__.append(str(HERE / "service" / "channels"))
tests.fakes.__path__.append(str(HERE / "tests" / "fakes"))
"""


def write_scratch(folder: Path) -> list[str]:
    """Write the page's code below the folder; return the paths."""
    blocks = dict(BLOCK.findall(PAGE.read_text()))
    for path, code in blocks.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    (folder / "service/channels/pager/__init__.py").write_text("")
    (folder / "conftest.py").write_text(CONFTEST)
    return [*blocks]


def test_channel_of_the_page_passes_the_contract(tmp_path: Path) -> None:
    paths = write_scratch(tmp_path)
    assert len(paths) == 4
    (test,) = [path for path in paths if path.startswith("tests/service/")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(CHECKOUT / "pyproject.toml")]
    command += ["--rootdir", str(tmp_path), "--confcutdir", str(tmp_path), str(tmp_path / test)]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) >= 20
