"""The stages of a judgement: none can be missing, and they apply in the order of the table."""

import inspect
from pathlib import Path

import pytest

import sayso.features
from sayso.core.policy import stages
from sayso.core.policy.engine import Policy
from sayso.core.policy.stages import STAGES, Stage, load_stages


def test_every_feature_that_judges_has_its_row() -> None:
    folders = Path(sayso.features.__file__).parent.glob("*/judging.py")
    assert sorted(STAGES) == sorted(f"sayso.features.{path.parent.name}.judging:STAGE" for path in folders)


def test_every_stage_has_the_methods_of_a_stage() -> None:
    for stage in load_stages():
        for name in ("want", "apply"):
            wanted = inspect.signature(getattr(Stage, name)).parameters
            assert [*wanted] == ["self", *inspect.signature(getattr(stage, name)).parameters]


def test_policies_have_what_stages_see_of_them() -> None:
    for name, member in vars(stages.Rulebook).items():
        if isinstance(member, property):
            assert hasattr(Policy, name) or name in Policy.model_fields


def test_a_stage_that_is_missing_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"sayso\.features\.nobody"):
        load_stages((*STAGES, "sayso.features.nobody.judging:STAGE"))
