"""A worker keeps its settings, and its tools see none of the passwords in them."""

import os
import subprocess
import sys

from service.core.settings import CHECKOUT, Settings, variable_of

PROGRAM = """
import os
from pathlib import Path
from service.core.settings import load
from workers import held_settings, hold_settings
settings = load()
hold_settings(settings)
assert held_settings() == settings != load()
print(dict(os.environ), Path("/proc/self/environ").read_text())
"""
URLS = {
    "redis_url": "redis://:hunter2@store/0",
    "queue_url": "redis://:hunter2@jobs/0",
    "archive": "s3+https://key:hunter2@bucket/desk",
    "egress_proxy": "http://out:hunter2@proxy:3128",
    "checkpoints": "",  # they need a key file
}


def test_tools_of_a_worker_see_no_url_with_a_password() -> None:
    assert set(URLS) == {name for name, field in Settings.model_fields.items() if not field.repr}
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT), **{variable_of(name): url for name, url in URLS.items()}}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True)
    assert "PYTHONPATH" in done.stdout
    assert "hunter2" not in done.stdout
