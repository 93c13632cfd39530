"""Fixtures of the MCP proxy's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack, running_stack
from sayso import Client
from service.core.settings import CHECKOUT
from tests.frameworks.mcp.desks import Desk
from tests.service.core.auth.signing import row, write_issuers


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Sayso with the rules of the frameworks' tests."""
    home = tmp_path_factory.mktemp("mcp")
    environ = {
        "SAYSO_POLICY": str(CHECKOUT / "tests" / "frameworks" / "policy.yaml"),
        "SAYSO_WORKERS": "1",
        "SAYSO_TOKEN_ISSUERS": str(write_issuers(home, row())),
    }
    with running_stack(home, environ) as stack:
        yield stack


@pytest.fixture
def desk(running: Stack, tmp_path: Path) -> Iterator[Desk]:
    """The same, without effects."""
    with Client(running.url, "-") as reviewer:
        reviewer.sign_in("admin", running.admin_password)
        yield Desk(running, reviewer, tmp_path)
        for left in reviewer.waiting().suspensions:
            reviewer.cancel(left.run.id)
