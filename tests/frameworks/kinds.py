"""The frameworks under test, and the scenarios that each does not support."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from service.core.settings import CHECKOUT

ENVIRONMENTS = CHECKOUT / ".venv" / ".frameworks"
MCP = "mcp"
"""The environment of the MCP proxy, which has no column."""

AGUI = "agui"
"""The environment of the AG-UI proxy and of agents behind it, which has no column."""

AGUI_AGENTS = ("agui_agent_framework", "agui_crewai", "agui_google_adk", "agui_strands")
"""The environments of agents that do not fit beside those."""

TRPC_AGENT_GO = "trpc_agent_go"
"""The folder of the Go server of trpc-agent-go, which has no Python packages and no column."""

CLAUDE = "claude_agent_sdk"
"""The environment of Claude Code and its SDK, and their column."""

SDK = "sdk"
"""The environment of the SDK alone with its command line."""

IS_LOWEST = os.environ.get("FRAMEWORKS_LOWEST") == "1"
"""Whether the environments hold the oldest packages that the SDK and its extras allow, without a server."""


def find_python(environment: str) -> Path:
    """Return the interpreter of an environment."""
    return ENVIRONMENTS / (f"lowest_{environment}" if IS_LOWEST else environment) / "bin" / "python"


@dataclass(frozen=True)
class Kind:
    """A framework in one of its modes: its environment, its bot if it has one, and its unsupported scenarios.

    The table says with `limits` which parts of a scenario it does not have.

    If `seen`, its tools run through our gate and get an idempotency key.
    """

    name: str
    title: str
    environment: str
    skips: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    seen: bool = True

    @property
    def python(self) -> Path:
        """The interpreter of its environment, or our own if it needs no packages."""
        if not self.environment:
            return Path(sys.executable)
        return find_python(self.environment)

    @property
    def module(self) -> str:
        """The module with the bot."""
        return f"tests.frameworks.bots.{self.name}"


_NO_KEY = "the graph runs the call itself without an idempotency key, so a reviewer decides"
_NO_RESULTS = "the graph reports its results only when it stops, so a reviewer decides"

_NO_EVENTS = "the timeline reads none of its events; the run's trail shows what it did"
_SAVED_BY_SAYSO = {"stale": "Sayso holds the whole state, so no other process can resume the run"}
_OURS = {**_SAVED_BY_SAYSO, "timeline": _NO_EVENTS}
_THREAD = {"timeline": _NO_EVENTS}
_NOT_HELD = "Claude Code keeps the session itself, so Sayso holds no state of it"
_CLAUDE = {
    "again": "Claude Code runs the call itself without an idempotency key, so the same call is a new item",
    "changed": "a hook gets the arguments of a call, not the definition of its tool",
    "large": _NOT_HELD,
    "tampered": _NOT_HELD,
    "worker": "you start Claude Code and resume its session; no worker does",
    **_THREAD,
}
_CLAUDE_LIMITS = {
    "denied_by_rules": "five of them: a hook gets no definition of a tool that could change",
    "denied_again": "five of them: no denial ends a run of Claude Code",
}

BOTS = (
    Kind("pydantic_ai", "Pydantic AI", "pydantic_ai", _OURS),
    Kind("openai_agents", "OpenAI Agents", "openai_agents", _OURS),
    Kind("agent_framework", "Agent Framework", "agent_framework", _OURS),
    Kind("langgraph_batched", "LangChain agent, batched interrupts", "langgraph", _THREAD),
    Kind("langgraph_per_call", "LangChain agent, interrupts per call", "langgraph", _THREAD),
    Kind(
        "langgraph_inbox",
        "LangGraph, Agent Inbox",
        "langgraph",
        {**_THREAD, "again": _NO_KEY, "late": _NO_RESULTS},
        seen=False,
    ),
    Kind("google_adk", "Google ADK", "google_adk", _OURS),
    Kind("crewai", "CrewAI", "crewai", _OURS),
    Kind("autogen", "AutoGen, one agent", "autogen", _SAVED_BY_SAYSO),
    Kind("autogen_swarm", "AutoGen, a Swarm", "autogen", _SAVED_BY_SAYSO),
    Kind("afk", "AFK, as described", "afk"),
    Kind("parsimony", "parsimony-agents", "parsimony", _SAVED_BY_SAYSO),
)
"""The frameworks whose runs our workers resume: each has a bot, and runs the scenarios of `test_conformance.py`."""

KINDS = (*BOTS, Kind(CLAUDE, "Claude Agent SDK", CLAUDE, _CLAUDE, _CLAUDE_LIMITS))
"""The columns of the support table. Those without a bot have tests of their own with the names of the scenarios."""

SCENARIOS = {
    "approve": "approve",
    "edit": "edit",
    "deny": "deny with message",
    "changes": "request changes",
    "value": "value",
    "timeout": "timeout with fallback",
    "batch": "batch of three, mixed decisions",
    "twice": "two suspensions in a row",
    "crash": "crash during a call",
    "again": "crash during an idempotent call",
    "late": "crash after the calls",
    "race": "two workers at once",
    "changed": "changed tool definition",
    "large": "1 MiB of state",
    "tampered": "tampered state",
    "stale": "run resumed by another process",
    "worker": "started by a worker",
    "timeline": "its own messages on the timeline",
    "denied_by_people": "denials by people (9)",
    "denied_by_rules": "denials by rules, deadlines and stops (6)",
    "denied_again": "denials repeated, raced and crashed (6)",
}
"""The rows of the support table, by test name."""
