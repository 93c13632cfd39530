"""Agents, with the fields that the runner reads."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class FailSafeConfig:
    """The limits of a run."""

    max_steps: int = 20
    max_wall_time_s: float = 300.0
    approval_denial_policy: str = "skip_action"


@dataclass(kw_only=True)
class Agent:
    """A model, its tools, and who is asked before they run."""

    model: Any
    name: str = "Agent"
    tools: list[Any] = field(default_factory=list)
    instructions: str = ""
    policy_roles: list[Any] = field(default_factory=list)
    policy_engine: Any = None
    subagents: list[Any] = field(default_factory=list)
    fail_safe: FailSafeConfig = field(default_factory=FailSafeConfig)
