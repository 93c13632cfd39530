"""Tools that check an installation: those of `.venv-delivery`, or those on this machine."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT

DISTRIBUTION = CHECKOUT / "distribution"
_VENV = CHECKOUT / ".venv-delivery"
_BINARIES = (*_VENV.glob("lib/python*/site-packages/*/bin"), *_VENV.glob("lib/python*/site-packages/*/bin/linux-*"))
_PLACES = os.pathsep.join(map(str, (_VENV / "bin", *_BINARIES, os.environ["PATH"], "/usr/sbin")))


def find_tool(name: str) -> str:
    """Return the path of a tool, or skip the test that needs it."""
    tool = shutil.which(name, path=_PLACES)
    if tool is None:
        pytest.skip(f"{name} is not installed; `make journeys` installs what its registries have.")
    return tool


def run(tool: str, *options: str | Path, folder: Path = CHECKOUT, expects: Sequence[int] = (0,)) -> str:
    """Run a tool and return all that it printed, once it ended with an expected code."""
    command = [find_tool(tool), *map(str, options)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode in expects, done.stdout
    return done.stdout
