"""Fixtures of the scenarios, for the frameworks in `FRAMEWORKS`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.installations import Installation, running_installation
from tests.frameworks.kinds import AGUI, BOTS, CLAUDE, IS_LOWEST, MCP, SDK, TRPC_AGENT_GO, Kind

_NAMES = os.environ.get("FRAMEWORKS", "").split(",")
CHOSEN = [one for one in BOTS if one.name in _NAMES]
INSTALLED = {*(kind.environment for kind in CHOSEN), *([MCP] if MCP in _NAMES else [])}
"""The environments that were asked for."""

_ALWAYS = {"test_sdk.py", "test_gate_decorators.py"}
_OF_FRAMEWORKS = [module.name for module in Path(__file__).parent.glob("test_*.py") if module.name not in _ALWAYS]
collect_ignore_glob = [] if CHOSEN else _OF_FRAMEWORKS
if not INSTALLED:
    collect_ignore_glob.append("test_gate_decorators.py")
collect_ignore_glob += [f"test_{name}.py" for name in ("parsimony", "openai_agents") if name not in _NAMES]
if IS_LOWEST:  # these environments have no server, and agents behind the AG-UI proxy have none of their own
    collect_ignore_glob += ["test_conformance.py", "test_denials.py", "test_quickstarts.py", "test_parsimony.py"]
    collect_ignore_glob += ["test_openai_agents.py", "agui/test_agui_frameworks.py", "agui/test_agui_crewai.py"]
if SDK not in _NAMES:
    collect_ignore_glob.append("test_sdk.py")
if MCP not in _NAMES:
    collect_ignore_glob.append("mcp/*")
if AGUI not in _NAMES:
    collect_ignore_glob.append("agui/*")
if TRPC_AGENT_GO not in _NAMES:
    collect_ignore_glob.append("trpc_agent_go/*")
if CLAUDE not in _NAMES:
    collect_ignore_glob.append("claude_agent_sdk/*")


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that share an installation in one process."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        kind = callspec.params.get("running") if callspec is not None else None
        item.add_marker(pytest.mark.xdist_group(kind.name if kind is not None else item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session", params=CHOSEN, ids=lambda kind: kind.name)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A Sayso for one framework."""
    kind: Kind = request.param
    with running_installation(kind, tmp_path_factory.mktemp(kind.name)) as installation:
        yield installation


@pytest.fixture
def installation(running: Installation, request: pytest.FixtureRequest) -> Installation:
    """The same, without effects. Scenarios that the framework does not support are skipped with the reason."""
    scenario = request.node.originalname.removeprefix("test_")
    if reason := running.kind.skips.get(scenario):
        pytest.skip(reason)
    running.clear()
    return running
