"""`sayso policy check`, with and without a desk."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sayso import __version__
from sayso.core.policy.files.packages import PACKAGES
from service.core.settings import CHECKOUT

GOOD = "version: 1\ndefault: deny\nrules: []\n"
BAD = "version: 1\ndefault: perhaps\nrules: []\n"
DEAD = "version: 1\ndefault: deny\nrules: [{id: a, action: deny}, {id: b, action: allow}]\n"


def run(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command line without a login and without a desk."""
    environ = {"HOME": str(home), "PYTHONPATH": str(CHECKOUT), **environ}
    command = [sys.executable, "-m", "sayso", *words]
    return subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (GOOD, 0, "rules.yaml: 0 rules, version "),
        (BAD, 1, "rules.yaml:2:10: default: must be"),
        (DEAD, 0, "warning: rule b: never decides"),
    ],
)
def test_policy_check_works_without_desk_and_sign_in(tmp_path: Path, text: str, code: int, message: str) -> None:
    (tmp_path / "rules.yaml").write_text(text)
    done = run(tmp_path, "policy", "check", "rules.yaml")
    assert (done.returncode, message in done.stdout) == (code, True), done
    assert ("Checked on this machine only" in done.stderr) == (code == 0)


def test_policy_check_offline_asks_no_desk(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(DEAD)
    nowhere = {"SAYSO_URL": "http://127.0.0.1:9", "SAYSO_KEY": "sayso_agent_k"}
    done = run(tmp_path, "policy", "check", "rules.yaml", "--offline", "--json", **nowhere)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["ok"], result["rules"], len(result["warnings"])) == (True, 2, 1)


def test_policy_check_falls_back_when_no_desk_answers(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(GOOD)
    done = run(tmp_path, "policy", "check", "rules.yaml", SAYSO_URL="http://127.0.0.1:9", SAYSO_KEY="sayso_agent_k")
    assert (done.returncode, "Checked on this machine only" in done.stderr) == (0, True)
    assert "http://127.0.0.1:9" in done.stderr


def test_policy_check_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "policy", "check", "none.yaml")
    assert (done.returncode, "none.yaml cannot be read: No such file" in done.stderr) == (1, True)


def test_policy_check_names_each_line_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_bytes(b"version: 1\n# \xff\n")
    done = run(tmp_path, "policy", "check", "rules.yaml")
    assert (done.returncode, "rules.yaml:2:1: the line is not UTF-8" in done.stdout) == (1, True)


def test_policy_check_says_what_to_install_when_packages_are_missing(tmp_path: Path) -> None:
    """The `cli` extra alone installs no package that reads rules."""
    (tmp_path / "rules.yaml").write_text(GOOD)
    hide = f"import sys; [sys.modules.__setitem__(name, None) for name in {list(PACKAGES)}]"
    script = f"{hide}; sys.argv = ['sayso', 'policy', 'check', 'rules.yaml']; from sayso.__main__ import main; main()"
    environ = {"HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert "pip install 'sayso[cli,policies]'" in done.stderr, done
    packages = "pyyaml, cel-expr-python, holidays, jsonschema-rs, sqlglot and tzdata"
    assert packages in done.stderr
    assert "Traceback" not in done.stderr


def test_policies_extra_installs_all_packages_of_rules() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    needs = project["project"]["optional-dependencies"]["policies"]
    assert {need.partition(">")[0] for need in needs} == set(PACKAGES.values())
    assert set(needs) <= set(project["dependency-groups"]["server"])


def test_version_matches_the_package(tmp_path: Path) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    built = project["version"]
    assert project["optional-dependencies"]["server"] == [f"sayso-server=={built}"]
    assert run(tmp_path, "--version", SAYSO_URL="http://127.0.0.1:9").stdout == f"sayso {built}\n", "no desk answers"
    assert built == __version__


def test_show_completion_detects_the_shell(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"]}
    script = f"{shlex.quote(sys.executable)} -m sayso --show-completion; exit $?"  # the shell stays its parent
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "_SAYSO_COMPLETE" in done.stdout) == (0, True), done
    done = run(tmp_path, _SAYSO_COMPLETE="complete_bash", COMP_WORDS="sayso po", COMP_CWORD="1")
    assert done.stdout.split() == ["policy"]
