"""Fixtures of the AG-UI proxy's tests: a Sayso, an agent, and the proxy between them."""

from collections.abc import Iterator

import pytest

from tests.frameworks.agui.chats import Setup
from tests.frameworks.mcp.conftest import desk, running
from tests.frameworks.mcp.desks import Desk

__all__ = ["desk", "running"]


@pytest.fixture(params=["pydantic_ai", "langgraph"])
def setup(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Setup]:
    """An agent of each framework behind a proxy."""
    with Setup(desk, request.param) as started:
        yield started


@pytest.fixture
def stateful(desk: Desk) -> Iterator[Setup]:
    """An agent of LangGraph, which keeps its threads and takes any answer for its last question."""
    with Setup(desk, "langgraph", {"UNBOUND": "1"}) as started:
        yield started


@pytest.fixture
def forms(desk: Desk) -> Iterator[Setup]:
    """An agent of LangGraph, whose interrupts ask for values, too."""
    with Setup(desk, "langgraph") as started:
        yield started
