"""Recipes for agent frameworks with their real packages: each process is killed between question and answer."""

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from demo.stacks import Stack
from sayso.client import Client
from sayso.core.canonical_json import JsonObject
from tests.journeys.stacks import kill_process
from tests.typescript.conftest import HERE, TARBALL, TOOLS, environ_of
from tests.typescript.test_client import await_pending, end_of, read

RECIPES = ["ai_sdk", "openai_agents", "langgraph", "mastra"]
PACKAGES = HERE / "recipes" / "node_modules"


@pytest.fixture(scope="session")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipes, the packages of the frameworks, and the packed client."""
    folder = tmp_path_factory.mktemp("recipes")
    modules = folder / "node_modules"
    (modules / "@sayso").mkdir(parents=True)
    for package in PACKAGES.iterdir():
        (modules / package.name).symlink_to(package)
    with tarfile.open(TARBALL) as archive:
        archive.extractall(modules / "@sayso", filter="data")
    (modules / "@sayso" / "package").rename(modules / "@sayso" / "client")
    for file in [*(HERE / "recipes").glob("*.ts"), HERE / "recipes" / "package.json"]:
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def start(recipes: Path, stack: Stack, name: str, *args: str | Path) -> subprocess.Popen[str]:
    environ = {**environ_of(stack), "AI_SDK_LOG_WARNINGS": "false"}
    command = [str(PACKAGES / ".bin" / "node"), "--no-warnings", f"{name}.ts", *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=recipes, env=environ, text=True, stdout=pipe, stderr=pipe)


def test_recipes_fit_the_types_of_their_packages(recipes: Path) -> None:
    options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "nodenext", "--skipLibCheck"]
    options += ["--allowImportingTsExtensions", "--typeRoots", str(TOOLS / "@types"), "--types", "node"]
    command = [
        "node",
        str(TOOLS / "typescript" / "bin" / "tsc"),
        *options,
        *sorted(os.fspath(recipe) for recipe in recipes.glob("*.ts")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("action", ["approve", "edit", "deny"])
@pytest.mark.parametrize("name", RECIPES)
def test_recipe_killed_while_it_waits_runs_the_call_once_as_decided(
    recipes: Path, stack: Stack, reviewer: Client, tmp_path: Path, name: str, action: str
) -> None:
    state, paid, order = tmp_path / "state", tmp_path / "paid", f"{name}-{action}"
    first = start(recipes, stack, name, state, paid, order)
    waiting = await_pending(reviewer)
    kill_process(first.pid)
    first.communicate()
    args: JsonObject | None = {"order": order, "amount": 200} if action == "edit" else None
    verdict: Literal["approve", "deny"] = "deny" if action == "deny" else "approve"
    reviewer.decide(waiting.id, waiting.items[0], verdict, args=args, message="Never delivered")
    said = [end_of(start(recipes, stack, name, state, paid, order)) for _ in range(2)]
    amount = {"approve": "250", "edit": "200"}.get(action)
    expected = (
        f"paid {amount} for {order}" if amount else "refund was denied by admin: Never delivered. It did not run."
    )
    assert [expected in text for text in said] == [True, True], said
    assert read(paid) == ([amount] if amount else [])
