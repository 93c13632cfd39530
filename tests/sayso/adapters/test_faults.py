"""Tests of which errors of a framework every further attempt would meet."""

import pytest

from sayso.adapters.base import Adapter


class Limit(Exception):
    """A limit of the framework."""


class Plain(Adapter):
    framework = "plain"
    faults = (Limit,)


class Answered(Exception):
    """An answer of the model's server."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code


@pytest.mark.parametrize(
    "error",
    [
        Limit("25 steps"),
        TypeError("a bug"),
        AttributeError("a bug"),
        ImportError("no such module"),
        Answered(400),
        Answered(401),
        Answered(404),
        Answered(422),
        ExceptionGroup("all models", [Answered(400), Limit("25 steps")]),
    ],
    ids=repr,
)
def test_error_that_the_same_state_meets_again_is_a_fault(error: Exception) -> None:
    assert Plain().is_fault(error)


@pytest.mark.parametrize(
    "error",
    [
        Answered(408),
        Answered(409),
        Answered(429),
        Answered(500),
        Answered(503),
        TimeoutError(),
        ConnectionError(),
        RuntimeError("the model is away"),
        ExceptionGroup("all models", [Answered(400), Answered(503)]),
    ],
    ids=repr,
)
def test_error_that_may_pass_is_no_fault(error: Exception) -> None:
    assert not Plain().is_fault(error)
