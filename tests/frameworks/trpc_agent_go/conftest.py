"""Fixtures: a Sayso, the Go server, and a program between them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sayso import Client
from tests.frameworks.mcp.conftest import desk, running
from tests.frameworks.mcp.desks import Desk
from tests.frameworks.trpc_agent_go.hosts import Host
from tests.frameworks.trpc_agent_go.servers import GoServer, build_server, running_server

__all__ = ["desk", "running"]

Hosts = Callable[..., Host]


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built server; the test is skipped without Go or the module."""
    return build_server(tmp_path_factory.mktemp("trpc_agent_go"))


@pytest.fixture
def server(binary: Path, desk: Desk) -> Iterator[GoServer]:
    """A server whose effects are the desk's in this test."""
    with running_server(binary, desk.home) as started:
        yield started


@pytest.fixture
def hosts(desk: Desk, server: GoServer) -> Iterator[Hosts]:
    """Makes programs for conversations with an agent of the server."""
    with Client(desk.stack.url, desk.stack.agent_key, patience_s=60) as client:

        def make(agent: str = "payments", door: str = "events") -> Host:
            return Host(server.url, door, agent, client)

        yield make
