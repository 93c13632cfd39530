"""A home belongs to one launch at a time, and to its user alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launch.errors import AlreadyRunning, CannotStart, UnsafeFolder
from launch.homes import locked, prepare_home, prepare_socket_folder
from service.settings import CHECKOUT

HOLD_AND_DIE = """
import os, sys
from pathlib import Path
from launch.homes import locked
with locked(Path(sys.argv[1]), "http://127.0.0.1:1"):
    os.kill(os.getpid(), 9)
"""


def test_a_new_home_is_for_its_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"

    prepare_home(home)

    assert [oct((home / name).stat().st_mode & 0o777) for name in (".", "data", "logs")] == ["0o700"] * 3


def test_a_home_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    prepare_home(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_home_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(CannotStart, match="Set SAYSO_HOME"):
        prepare_home(tmp_path / "file" / "home")


def test_the_second_to_lock_a_home_is_told_where_the_first_is(tmp_path: Path) -> None:
    with (
        locked(tmp_path, "http://127.0.0.1:8321"),
        pytest.raises(AlreadyRunning) as caught,
        locked(tmp_path, "http://127.0.0.1:9000"),
    ):
        pass

    assert caught.value.facts == {"pid": os.getpid(), "address": "http://127.0.0.1:8321"}
    assert "http://127.0.0.1:8321" in caught.value.message
    assert "Ctrl-C" in caught.value.message


def test_a_lock_whose_holder_was_killed_is_free(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", HOLD_AND_DIE, tmp_path], cwd=CHECKOUT, check=False)
    assert died.returncode == -9
    assert json.loads((tmp_path / "launch.lock").read_text())["address"] == "http://127.0.0.1:1"

    with locked(tmp_path, "http://127.0.0.1:2"):
        assert json.loads((tmp_path / "launch.lock").read_text())["pid"] == os.getpid()


def test_a_socket_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(UnsafeFolder, match="shorter path"):
        prepare_socket_folder(tmp_path / "home", folder / "store.sock")
