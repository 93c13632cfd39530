"""Tests of the image: the steps of the Dockerfile in a folder, without an engine, and the list of its packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from demo.stacks import neutral_environ
from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.distribution.tools import find_tool
from tests.journeys.stacks import PATIENCE_S

pytestmark = pytest.mark.timeout(600)  # without a cache, installing takes minutes

DOCKERFILE = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
PAGE = (CHECKOUT / "docs" / "production.md").read_text(encoding="utf-8")
PREFIX = "/opt/sayso"


def make(target: str, folder: Path) -> None:
    """Run a target of the Makefile that writes into a folder."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", target, f"DIST={folder}"]
    subprocess.run(command, cwd=CHECKOUT, env=environ, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image") / "dist"
    make("wheels", folder)
    return folder


def test_two_builds_of_the_wheels_are_the_same_bytes(wheels: Path, tmp_path: Path) -> None:
    make("wheels", tmp_path / "again")
    first, again = (
        {file.name: file.read_bytes() for file in place.iterdir()} for place in (wheels, tmp_path / "again")
    )
    assert first == again
    assert len(first) == 3


@pytest.fixture(scope="module")
def image(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /opt/sayso: the steps of its first stage, in a folder."""
    folder = tmp_path_factory.mktemp("opt")
    prefix = folder / "sayso"
    (copied,) = re.findall(r"^COPY (.+) \./$", DOCKERFILE, re.MULTILINE)
    for source in copied.split():
        place = wheels if source.startswith("dist/") else CHECKOUT
        for file in place.glob(source.removeprefix("dist/")):
            shutil.copy(file, folder)
    (steps,) = re.findall(r"^RUN (python -m venv .+)$", DOCKERFILE, re.MULTILINE)
    environ = {**neutral_environ(), "SOURCE_DATE_EPOCH": "1580601600"}
    steps = steps.replace("python -m venv", f"{sys.executable} -m venv", 1).replace(PREFIX, str(prefix))
    steps = steps.replace("--no-cache-dir", "").replace(
        "python3.11", f"python{sys.version_info[0]}.{sys.version_info[1]}"
    )
    done = subprocess.run(["sh", "-ec", steps], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return prefix


def test_image_runs_its_programs_and_those_of_an_image_from_it(
    image: Path, clean_store_url: str, tmp_path: Path
) -> None:
    """The worker of the image that docs/production.md makes has its agent, and its probe finds it."""
    (own,) = re.findall(r"^```dockerfile\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (agents,) = re.findall(r"^COPY (\S+) (/\S+)$", own, re.MULTILINE)
    (variables,) = re.findall(r"^ENV (.+)$", own, re.MULTILINE)
    folder = tmp_path / agents[1].strip("/")
    folder.mkdir()
    shutil.copy(CHECKOUT / "demo" / "agents.py", folder / agents[0])
    given = dict(pair.split("=", 1) for pair in variables.split())
    environ = {
        **neutral_environ(),
        **given,
        "PATH": f"{image / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": given["PYTHONPATH"].replace(agents[1].rstrip("/"), str(folder)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SAYSO_AGENTS": "refunds:support",
        "SAYSO_HOME": str(tmp_path / "home"),
        "SAYSO_REDIS_URL": clean_store_url,
    }

    def probe() -> int:
        return subprocess.run(
            ["python", "-m", "launch.checks", "worker"], check=False, cwd=image / "programs", env=environ
        ).returncode

    assert probe() == 1
    with (tmp_path / "log").open("w+") as log:
        child = subprocess.Popen(["python", "-m", "workers"], cwd=image / "programs", env=environ, stdout=log)
        try:
            assert wait_until(lambda: "worker_started" in (tmp_path / "log").read_text(), PATIENCE_S)
            assert wait_until(lambda: probe() == 0, PATIENCE_S)
        finally:
            child.kill()
            child.wait()
    assert '"agents": ["demo"]' in (tmp_path / "log").read_text()


def test_bill_of_materials_lists_each_pinned_package(tmp_path: Path) -> None:
    find_tool("cyclonedx-py")
    texts = []
    for folder in ("first", "again"):
        make("sbom", tmp_path / folder)
        texts.append((tmp_path / folder / "sayso.cdx.json").read_text())
    assert texts[0] == texts[1]
    document = json.loads(texts[0])
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "sayso")
    pins = re.findall(r"^([\w.-]+)==([^\s;\\]+)", (CHECKOUT / "requirements.lock").read_text(), re.MULTILINE)
    assert {(part["name"], part["version"]) for part in document["components"]} == set(pins)


def interpolate(text: str) -> str:
    """Replace `${NAME:-value}` by its value and `${NAME:+value}` by nothing, as Compose does without a setting."""
    while (shorter := re.sub(r"\$\{\w+:(?:-([^${}]*)|\+[^${}]*)\}", r"\1", text)) != text:
        text = shorter
    return text


CHECK = """
import sys
from compose_spec import PyCompose
compose = PyCompose.from_yaml(sys.stdin.read())
compose.validate()
print(*compose.service_names())
"""


def test_compose_file_follows_the_specification() -> None:
    text = interpolate((CHECKOUT / "compose.yaml").read_text(encoding="utf-8"))
    resolved = yaml.safe_dump(yaml.safe_load(text))
    python = Path(find_tool("cyclonedx-py")).with_name("python")
    done = subprocess.run([python, "-c", CHECK], input=resolved, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(yaml.safe_load(text)["services"])
