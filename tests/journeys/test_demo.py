"""`make demo` does the whole job unattended and shows it."""

import subprocess
import sys

from demo.checks import LIFECYCLE
from service.core.settings import CHECKOUT


def test_demo_succeeds_and_shows_its_timeline() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo"], cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=110
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for kind in LIFECYCLE:
        assert f" s  {kind} " in done.stdout
    assert "The demo succeeded" in done.stdout
    assert done.stderr == ""
