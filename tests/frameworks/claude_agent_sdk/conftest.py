"""Fixtures of Claude Code: a Sayso with the shipped rules, and an agent whose shell writes files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack, running_stack
from sayso import Client
from service.core.settings import CHECKOUT
from tests.frameworks.claude_agent_sdk.agents import Agent
from tests.frameworks.mcp.desks import Desk


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Sayso with the rules for coding agents."""
    rules = CHECKOUT / "sayso" / "adapters" / "hooks" / "rules.yaml"
    environ = {"SAYSO_POLICY": str(rules), "SAYSO_WORKERS": "1"}
    with running_stack(tmp_path_factory.mktemp("hooks"), environ) as running:
        yield running


@pytest.fixture
def desk(stack: Stack, tmp_path: Path) -> Iterator[Desk]:
    """The same, with nothing that waits."""
    with Client(stack.url, "-") as reviewer:
        reviewer.sign_in("admin", stack.admin_password)
        yield Desk(stack, reviewer, tmp_path)
        for waiting in reviewer.waiting().suspensions:
            reviewer.cancel(waiting.run.id)


@pytest.fixture(params=["command", "sdk"])
def agent(desk: Desk, request: pytest.FixtureRequest) -> Agent:
    """Claude Code with `sayso hook` in its settings, and the SDK with a hook in its options."""
    return Agent(desk, request.param)
