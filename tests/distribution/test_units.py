"""Tests of the units of systemd, by systemd's own check. None is started: that needs systemd as the first process."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch.programs import SETUP, WORKER
from launch.watched import MODULES
from service.core.settings import Settings, variable_of
from service.core.settings.secrets import FILED, file_variable_of
from tests.distribution.tools import DISTRIBUTION, find_tool

FOLDER = DISTRIBUTION / "systemd"
UNITS = (
    "sayso-setup.service",
    "sayso-service.service",
    "sayso-clock.service",
    "sayso-worker@1.service",
    "sayso-backup.service",
    "sayso.target",
    "sayso-backup.timer",
)
EXPOSED = "20"
"""The most that `systemd-analyze security` may find, of 100; a unit without any setting has 96."""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with a Python that exists here."""
    shutil.copytree(FOLDER, tmp_path / "units")
    for file in (tmp_path / "units").glob("*.service"):
        file.write_text(file.read_text().replace("/opt/sayso/bin/python", sys.executable))
    return tmp_path / "units"


def analyze(units: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"}
    command = [find_tool("systemd-analyze"), *options]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", UNITS)
def test_unit_is_valid(units: Path, unit: str) -> None:
    done = analyze(units, "verify", "--man=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS[:-2])
def test_unit_is_hardened(units: Path, unit: str) -> None:
    done = analyze(units, "security", "--offline=yes", f"--threshold={EXPOSED}", unit)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_units_run_the_programs_of_the_containers() -> None:
    commands = {}
    for file in FOLDER.glob("*.service"):
        (line,) = re.findall(r"^ExecStart=/opt/sayso/bin/python -m (.+)$", file.read_text(), re.MULTILINE)
        commands[re.split(r"[-.@]", file.name)[1]] = line
    watched = {name: f"launch.watched {name}" for name in MODULES}
    backup = "service.features.backup save --keep 48 /var/backups/sayso/"
    assert commands == {**watched, "worker": WORKER.module, "setup": SETUP.module, "backup": backup}


def test_units_name_settings_that_exist() -> None:
    texts = [file.read_text() for file in FOLDER.rglob("*") if file.is_file()]
    named = set(re.findall(r"^(?:Environment=)?(?:.* )?(SAYSO_\w+)=", "\n".join(texts), re.MULTILINE))
    assert named <= {*map(variable_of, Settings.model_fields), *map(file_variable_of, FILED)}
    assert "SAYSO_KEY_FILE" in named
