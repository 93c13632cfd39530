"""Tests of the wheel, the lock files and the Makefile."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT
from tests.launch.projects import WRONG, write_project

LOCKS = ("requirements.lock", "requirements-dev.lock")


def pins(lock: str) -> dict[str, str]:
    text = (CHECKOUT / lock).read_text(encoding="utf-8")
    return {match[0]: match[1] for match in re.findall(r"^([\w.-]+==\S+)([^\n]*)", text, flags=re.MULTILINE)}


def test_wheel_holds_only_sayso_and_needs_two_packages(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=CHECKOUT,
        check=True,
        text=True,
    )

    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "sayso/py.typed" in archive.namelist()
        rooms = {name.partition("/")[0] for name in archive.namelist()}
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needs = re.findall(r"^Requires-Dist: (.*)$", archive.read(metadata).decode(), flags=re.MULTILINE)
    assert rooms == {"sayso", "sayso-0.2.0.dist-info"}
    assert sorted(re.split(r"[<>=]", need)[0] for need in needs if "extra ==" not in need) == ["httpx", "pydantic"]


def test_wheel_installs_few_packages_and_imports_them_lazily(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    uv = Path(sys.executable).with_name("uv")
    empty = tmp_path / "empty"
    python = empty / "bin" / "python"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, empty], check=True)
    locked = tmp_path / "locked.txt"
    locked.write_text("\n".join(f"{name}{version}" for name, version in split_pins("requirements.lock")))
    subprocess.run([uv, "pip", "install", "-q", "--python", python, "-c", locked, wheel], check=True)

    listed = subprocess.run(
        [uv, "pip", "list", "--python", python, "--format", "freeze"], check=True, capture_output=True
    )
    names = {line.partition("==")[0] for line in listed.stdout.decode().split()}
    needs = {"annotated-types", "anyio", "certifi", "h11", "httpcore", "idna", "pydantic-core", "typing-extensions"}
    assert names == {"sayso", "httpx", "pydantic", "typing-inspection", *needs}
    (site,) = empty.glob("lib/*/site-packages")
    assert not {"service", "workers", "templates", "demo", "tests", "launch", "storm"} & {
        folder.name for folder in site.iterdir()
    }

    script = (
        "import sys; from sayso import Denied, gate; print(*sorted({'pydantic', 'httpx'} & set(sys.modules)))\n"
        "import sayso; sayso.Client; gate('refund', {})"
    )
    done = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "\n", "heavy packages are imported lazily"
    assert_types_are_known(python, tmp_path)
    command = subprocess.run([empty / "bin" / "sayso", "inbox"], capture_output=True, text=True, check=False)
    assert (command.returncode, "pip install 'sayso[cli]'" in command.stderr) == (2, True)


def assert_types_are_known(python: Path, folder: Path) -> None:
    """Check that mypy reads the types of the installed package: a project is right, and wrong words are faults."""
    project = write_project(folder / "project")
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "."]
    done = subprocess.run(check, cwd=project, capture_output=True, text=True, check=False)
    faults = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [fault.partition(":")[0] for fault in faults] == ["wrong.py"] * len(WRONG), done.stdout
    assert all(part in fault for part, fault in zip(WRONG.values(), faults, strict=True)), faults


def split_pins(lock: str) -> list[tuple[str, str]]:
    matches = (re.match(r"([\w.-]+)(?:\[[^]]*\])?(==[^\s;]+)", pin) for pin in pins(lock))
    return [(match[1], match[2]) for match in matches if match is not None]


def test_dev_lock_contains_the_runtime_lock() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_has_hashes_and_no_index(lock: str) -> None:
    text = (CHECKOUT / lock).read_text(encoding="utf-8")

    assert "://" not in text
    assert "--index" not in text
    assert text.count("--hash=sha256:") >= len(pins(lock))


def test_lock_has_every_declared_dependency() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    server = [*project["project"]["dependencies"], *project["dependency-groups"]["server"]]
    dev = project["dependency-groups"]["dev"]

    for lock, declared in (("requirements.lock", server), ("requirements-dev.lock", [*server, *dev])):
        locked = {pin.partition("==")[0] for pin in pins(lock)}
        wanted = {re.split(r"[\[<>=]", need)[0].lower() for need in declared if isinstance(need, str)}
        assert wanted - locked == set()


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_lock_installs_without_a_compiler(version: str, tmp_path: Path) -> None:
    """Every package has a wheel for these Pythons, but for one that is written in Python alone."""
    uv = Path(sys.executable).with_name("uv")
    wheels = ["--only-binary", ":all:", "--no-binary", "http-ece", "--python-version", version]
    command = [str(uv), "pip", "install", "--dry-run", "--target", str(tmp_path), *wheels, "-r", "requirements.lock"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


INSTALL = """
sed '/^echo "Installing/,$d' launch/install.sh > "$HOME/create.sh"
PYTHON3={python} sh "$HOME/create.sh" "$HOME/venv" requirements.lock 0
"""


def test_install_honours_the_python_that_is_named(tmp_path: Path) -> None:
    def create(python: str) -> subprocess.CompletedProcess[str]:
        script = INSTALL.format(python=python)
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        return subprocess.run(
            ["sh", "-c", script], cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False
        )

    refused = create("/no/python")
    assert (refused.returncode, "PYTHON3=/no/python is no Python 3.11" in refused.stderr) == (1, True)
    assert not (tmp_path / "venv").exists()
    assert "Creating" in create(sys.executable).stdout
    assert create(sys.executable).stdout == "", "the environment has this Python already"


def test_make_help_lists_every_target() -> None:
    alone = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # without the variables of an outer make
    output = subprocess.run(
        ["make", "help"], cwd=CHECKOUT, env=alone, check=True, capture_output=True, text=True
    ).stdout

    phony = re.search(r"^\.PHONY: (.+)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert {line.split()[1] for line in output.splitlines()} == set(phony[1].split())
