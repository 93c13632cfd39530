"""Tests of which errors of a framework every further attempt would meet."""

import pytest

from sayso.adapters.base import Adapter
from sayso.core.records.tools import ToolDefinition
from sayso.errors import FrameworkFault
from sayso.runner.protocol import Done, FrameworkState, build_agent
from sayso.runner.runs import FrameworkRun
from tests.builders import run_ref


class Limit(Exception):
    """A limit of the framework."""


class Plain(Adapter):
    framework, package, state_schema = "plain", "pydantic", "plain/1"
    faults = (Limit,)


class Answered(Exception):
    """An answer of the model's server."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code


class Coded(Exception):
    """An answer of the model's server, as Google's client raises it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


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
        Coded(400),
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
        Coded(429),
        TimeoutError(),
        ConnectionError(),
        RuntimeError("the model is away"),
        ExceptionGroup("all models", [Answered(400), Answered(503)]),
    ],
    ids=repr,
)
def test_error_that_may_pass_is_no_fault(error: Exception) -> None:
    assert not Plain().is_fault(error)


class Failing(Plain):
    """A framework that raises this error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def begin(self, text: str) -> Done:
        raise self._error

    async def resume(self, native: object, executor: object) -> Done:
        raise self._error


def start(error: Exception) -> FrameworkRun:
    """Return a run whose framework raises this error."""
    agent = build_agent(Failing(error), "bot", {"pay": ToolDefinition(name="pay")})
    state = FrameworkState(agent="bot", framework="plain", state_schema="plain/1")
    return FrameworkRun(agent, run_ref(), state)


async def test_error_of_a_framework_that_may_pass_keeps_its_own_cause() -> None:
    with pytest.raises(ConnectionError) as raised:
        await start(ConnectionError("away")).ask()
    assert raised.value.__cause__ is None


async def test_fault_of_a_framework_names_its_error_as_cause() -> None:
    with pytest.raises(FrameworkFault, match="Limit: 25 steps") as raised:
        await start(Limit("25 steps")).ask()
    assert isinstance(raised.value.__cause__, Limit)
