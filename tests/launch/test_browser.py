"""Tests of finding and installing a browser."""

from pathlib import Path

import pytest

from launch.browser import find_browser, install_commands


def test_find_browser_returns_a_chromium_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chromium = tmp_path / "chromium"
    chromium.write_text("#!/bin/sh\n")
    chromium.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_browser() == chromium


def test_find_browser_returns_none_without_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_browser() is None


def test_install_commands_use_sudo_unless_root() -> None:
    as_root, as_user = install_commands(is_root=True), install_commands(is_root=False)

    assert [command[0] for command in as_root] == ["apt-get", "apt-get"]
    assert [command[:2] for command in as_user] == [["sudo", "-n"]] * 2
