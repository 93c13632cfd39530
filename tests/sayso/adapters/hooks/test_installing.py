"""A hook is written beside all that stands in the settings file, once, and removed without a trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.adapters.hooks.installing import PLACES, Scope, install, remove, settings_path
from sayso.errors import InvalidInput

OTHERS: dict[str, Any] = {
    "permissions": {"deny": ["Read(.env)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}


@pytest.mark.parametrize("agent", PLACES)
def test_install_in_an_empty_folder_and_remove(agent: str, tmp_path: Path) -> None:
    file = settings_path(agent, Scope.project, tmp_path)
    assert not remove(agent, file)
    assert install(agent, file, "", 540)
    written = file.read_text()
    assert f'"sayso hook {agent} --wait 540 || exit 2"' in written
    assert not install(agent, file, "", 540)
    assert file.read_text() == written
    assert install(agent, file, " --fail open", 30)
    assert file.read_text().count(f"sayso hook {agent} --wait") == 1
    assert remove(agent, file)
    assert not file.exists() or "sayso" not in file.read_text()


def test_install_keeps_what_stands_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(OTHERS))
    file.chmod(0o600)
    assert install("claude-code", file, "", 540)
    settings = json.loads(file.read_text())
    mine, ours = settings["hooks"].pop("PreToolUse")
    assert mine == OTHERS["hooks"]["PreToolUse"][0]
    assert ours["hooks"][0]["timeout"] == 600
    assert settings["hooks"] == {"Stop": OTHERS["hooks"]["Stop"]}
    assert settings["permissions"] == OTHERS["permissions"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert remove("claude-code", file)
    assert json.loads(file.read_text()) == OTHERS


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "// mine\n{}", '{"a": 1, "a": 2}']
)
def test_install_refuses_a_file_that_it_cannot_read(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(InvalidInput, match="is left as it is"):
        install("claude-code", file, "", 540)
    assert file.read_text() == text
    assert [*tmp_path.iterdir()] == [file]


def test_user_scope_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_path("claude-code", Scope.user, Path("/elsewhere")) == tmp_path / ".claude" / "settings.json"


def test_install_follows_a_link_to_the_settings(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "settings.json").write_text("{}")
    (tmp_path / ".claude").symlink_to("dotfiles")
    install("claude-code", settings_path("claude-code", Scope.project, tmp_path), "", 540)
    assert "sayso" in (tmp_path / "dotfiles" / "settings.json").read_text()


def test_install_leaves_a_plugin_of_somebody_else(tmp_path: Path) -> None:
    file = tmp_path / "sayso.js"
    file.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(InvalidInput, match="did not write it"):
        install("opencode", file, "", 540)
    with pytest.raises(InvalidInput, match="did not write it"):
        remove("opencode", file)
    assert "Mine" in file.read_text()
