"""Fixtures of Claude Code: a Sayso with the shipped rules and those of the other frameworks, and an agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack, running_stack
from sayso import Client
from service.core.settings import CHECKOUT
from tests.frameworks.claude_agent_sdk.agents import Agent
from tests.frameworks.claude_agent_sdk.models import BANK
from tests.frameworks.mcp.desks import Desk


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Sayso with the rules for coding agents, and for the tools of `bank` those of the other frameworks."""
    coding = (CHECKOUT / "sayso" / "adapters" / "hooks" / "rules.yaml").read_text()
    others = (CHECKOUT / "tests" / "frameworks" / "policy.yaml").read_text().partition("\nrules:\n")[2]
    rules = tmp_path_factory.mktemp("rules") / "policy.yaml"
    rules.write_text(coding + others.replace(" id: ", " id: bank-").replace(" tool: ", f" tool: {BANK}"))
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
