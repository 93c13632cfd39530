"""The public names of the SDK: listed, importable, and none gone since the last release without a word."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from sayso import errors
from service.core.settings import CHECKOUT

FOLDER = Path(__file__).parent
CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
ADAPTERS = (
    *("afk", "agent_framework", "autogen", "crewai", "google_adk", "langgraph", "openai_agents", "parsimony"),
    "pydantic_ai",
)


def read_names(file: str) -> list[str]:
    return [line for line in (FOLDER / file).read_text().splitlines() if not line.startswith("#")]


def list_public() -> list[str]:
    """Return the names that the SDK declares."""
    declared = [
        f"{module}.{name}"
        for module in ("sayso", "sayso.client", "sayso.testing")
        for name in import_module(module).__all__
    ]
    classes = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and not name.startswith("_")]
    gates = [f"sayso.adapters.{adapter}.gate" for adapter in ADAPTERS]
    return sorted([*declared, *(f"sayso.errors.{name}" for name in classes), *gates])


def is_bound(name: str) -> bool:
    """Whether the module of a name binds it; frameworks of adapters need not be installed."""
    module, _, last = name.rpartition(".")
    if module == "sayso":
        return last in import_module("sayso").__all__
    path = CHECKOUT / module.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    bound = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    imported = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    bound |= {alias.asname or alias.name for alias in imported}
    bound |= {target.id for target in assigned if isinstance(target, ast.Name)}
    return last in bound


def test_list_has_every_public_name() -> None:
    assert read_names("public_names.txt") == list_public(), "list the name, and say it in the changelog"


@pytest.mark.parametrize("name", import_module("sayso").__all__)
def test_public_name_is_what_its_place_has(name: str) -> None:
    value = getattr(import_module("sayso"), name)
    assert value is not None
    assert not inspect.isclass(value) or value.__name__ == name


def test_name_of_the_last_release_is_still_there_or_in_the_changelog() -> None:
    unreleased = CHANGELOG.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    released, listed = read_names("released_names.txt"), read_names("public_names.txt")
    assert [name for name in released if not is_bound(name)] == [], "give it an alias"
    unsaid = [name for name in released if name not in listed and f"`{name}`" not in unreleased]
    assert unsaid == [], "say in the changelog where it went"


def test_list_of_the_last_release_is_of_the_last_release() -> None:
    latest = re.findall(r"^## (\d+\.\d+\.\d+) - ", CHANGELOG, re.MULTILINE)[0]
    assert (FOLDER / "released_names.txt").read_text().startswith(f"# {latest}\n"), "copy public_names.txt"


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("sayso.client.Client", True),
        ("sayso.client.clients.AsyncClient", True),
        ("sayso.errors.Denied", True),
        ("sayso.adapters.langgraph.gate", True),
        ("sayso.client.Nothing", False),
        ("sayso.Nothing", False),
    ],
)
def test_is_bound_finds_definitions_and_imports(name: str, bound: bool) -> None:
    assert is_bound(name) is bound
