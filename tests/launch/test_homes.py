"""Tests of the home folder and its lock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launch import AlreadyRunning, CannotStart, UnsafeFolder
from launch.homes import locked, prepare_home, prepare_socket_folder
from service.core.settings import CHECKOUT

HOLD_AND_DIE = """
import os, sys
from pathlib import Path
from launch.homes import locked
with locked(Path(sys.argv[1]), "http://127.0.0.1:1"):
    os.kill(os.getpid(), 9)
"""


def test_prepare_home_creates_private_folders(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"

    prepare_home(home)

    assert [oct((home / name).stat().st_mode & 0o777) for name in (".", "data", "logs")] == ["0o700"] * 3


def test_prepare_home_keeps_the_mode_of_an_existing_home(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    prepare_home(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_prepare_home_names_the_setting_on_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(CannotStart, match="Set SAYSO_HOME"):
        prepare_home(tmp_path / "file" / "home")


def test_locked_raises_with_the_address_of_the_holder(tmp_path: Path) -> None:
    with (
        locked(tmp_path, "http://127.0.0.1:8321"),
        pytest.raises(AlreadyRunning) as caught,
        locked(tmp_path, "http://127.0.0.1:9000"),
    ):
        pass

    assert caught.value.facts == {"pid": os.getpid(), "address": "http://127.0.0.1:8321"}
    assert "http://127.0.0.1:8321" in caught.value.message
    assert f"kill {os.getpid()}" in caught.value.message


def test_locked_succeeds_after_the_holder_was_killed(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", HOLD_AND_DIE, tmp_path], cwd=CHECKOUT, check=False)
    assert died.returncode == -9
    assert json.loads((tmp_path / "launch.lock").read_text())["address"] == "http://127.0.0.1:1"

    with locked(tmp_path, "http://127.0.0.1:2"):
        assert json.loads((tmp_path / "launch.lock").read_text())["pid"] == os.getpid()


def test_prepare_socket_folder_refuses_a_shared_folder(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(UnsafeFolder, match="shorter path"):
        prepare_socket_folder(tmp_path / "home", folder / "store.sock")
