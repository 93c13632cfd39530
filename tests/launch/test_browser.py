"""A browser is found on PATH, or installed where that is possible without asking anybody."""

from pathlib import Path

import pytest

from launch.browser import find_browser, install_commands


def test_a_chromium_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chromium = tmp_path / "chromium"
    chromium.write_text("#!/bin/sh\n")
    chromium.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_browser() == chromium


def test_without_one_nothing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_browser() is None


def test_root_installs_it_as_it_is_and_others_through_a_sudo_that_asks_nothing() -> None:
    as_root, as_user = install_commands(is_root=True), install_commands(is_root=False)

    assert [command[0] for command in as_root] == ["apt-get", "apt-get"]
    assert [command[:2] for command in as_user] == [["sudo", "-n"]] * 2
