"""Each step of a journey in `docs/architecture.md` names a function that exists and that an earlier step refers to."""

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.sources import ROOT, place

PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\d+\. (?P<text>[^`]*?)\s*\[`(?P<name>[\w.]+)`\]\((?P<path>[^)]+)\)", re.MULTILINE)
CROSSING = re.compile(r"^(Over|Through) ")
"""Steps that no code of the step before refers to: the text names what carries them instead."""


class Step(NamedTuple):
    text: str
    name: str
    path: Path

    @property
    def definition(self) -> str:
        return self.name.rpartition(".")[2]


def _read_journeys() -> dict[str, list[Step]]:
    journeys = PAGE.read_text().partition("\n## Journeys\n")[2].partition("\n## ")[0]
    sections = re.split(r"^### (.+)$", journeys, flags=re.MULTILINE)[1:]
    return dict(zip(sections[::2], map(_read_steps, sections[1::2]), strict=True))


def _read_steps(text: str) -> list[Step]:
    found = [match.group("text", "name", "path") for match in STEP.finditer(text)]
    return [Step(what, name, (PAGE.parent / path).resolve()) for what, name, path in found]


JOURNEYS = _read_journeys()
STEPS = [pytest.param(step, id=f"{title}: {step.name}") for title, steps in JOURNEYS.items() for step in steps]


def test_page_has_the_four_journeys() -> None:
    assert len(JOURNEYS) == 4
    assert all(len(steps) > 4 for steps in JOURNEYS.values())


@pytest.mark.parametrize("step", STEPS)
def test_step_names_an_existing_definition(step: Step) -> None:
    assert step.path.is_file(), f"stale link: {step.path} does not exist"
    module = place(step.path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert step.name.startswith(f"{module}."), f"stale link: {step.name} is not in {module}"
    body = ast.parse(step.path.read_text()).body
    for part in step.name.removeprefix(f"{module}.").split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"stale link: {module} has no {part} of {step.name}"
        body = getattr(found[-1], "body", [])


@pytest.mark.parametrize("journey", JOURNEYS)
def test_step_is_referred_to_by_an_earlier_one(journey: str) -> None:
    steps = JOURNEYS[journey]
    for before, step in pairwise(steps):
        if CROSSING.match(step.text):
            continue
        earlier = [one for one in steps[: steps.index(step)] if one.path.is_file()]
        assert any(_refers(one.path, step.definition) for one in earlier), (
            f"stale link: {step.name} is not used by {before.name} or an earlier step"
        )


def _refers(path: Path, definition: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == definition)
        or (isinstance(node, ast.Attribute) and node.attr == definition)
        or (isinstance(node, ast.alias) and node.name == definition)
        for node in ast.walk(ast.parse(path.read_text()))
    )
