"""Erased variables are gone from the environment, and from what the kernel shows of it."""

import os
import subprocess
import sys

from service.core.settings import CHECKOUT

PROGRAM = """
import os
from pathlib import Path
from service.core.settings.secrets import erase
erase({"SECRET"})
print(dict(os.environ), Path("/proc/self/environ").read_text())
"""


def test_erase_removes_variables_in_any_letters_and_no_others() -> None:
    given = {"SECRET": "hunter1", "secret": "hunter2", "SECRETS": "kept", "OTHER": "kept too"}
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT), **given}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True)
    assert "hunter" not in done.stdout
    assert done.stdout.count("kept") == 4
