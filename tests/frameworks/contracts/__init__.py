"""AFK for tests: its own checkout if it is on the path, otherwise the stand-in in this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import afk
from afk.agents import Agent, FailSafeConfig
from afk.agents.errors import AgentCircuitOpenError, AgentError
from afk.agents.types import (
    AgentRunEvent,
    ApprovalDecision,
    ApprovalRequest,
    DeferredDecision,
    PolicyDecision,
    PolicyEvent,
    UserInputDecision,
    UserInputRequest,
)
from afk.core import Runner, RunnerConfig
from afk.llms.types import LLMResponse, ToolCall, Usage
from afk.memory import SQLiteMemoryStore
from afk.tools import ToolDeferredHandle, ToolResult, tool

IS_REAL = not hasattr(afk, "STANDS_IN")
"""Whether this is AFK itself."""

__all__ = [
    "IS_REAL",
    "Agent",
    "AgentCircuitOpenError",
    "AgentError",
    "AgentRunEvent",
    "ApprovalDecision",
    "ApprovalRequest",
    "DeferredDecision",
    "FailSafeConfig",
    "LLMResponse",
    "PolicyDecision",
    "PolicyEvent",
    "Runner",
    "RunnerConfig",
    "SQLiteMemoryStore",
    "ToolCall",
    "ToolDeferredHandle",
    "ToolResult",
    "Usage",
    "UserInputDecision",
    "UserInputRequest",
    "tool",
]
