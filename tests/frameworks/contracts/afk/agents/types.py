"""Types exchanged by the runner, its policies and its provider."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """Something that is about to happen."""

    event_type: str
    run_id: str
    thread_id: str
    step: int
    context: dict[str, Any]
    tool_name: str | None = None
    tool_args: dict[str, Any] | None = None
    subagent_name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy says to it."""

    action: str = "allow"
    reason: str | None = None
    updated_tool_args: dict[str, Any] | None = None
    request_payload: dict[str, Any] = field(default_factory=dict)
    policy_id: str | None = None
    matched_rules: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """May this go on."""

    run_id: str
    thread_id: str
    step: int
    reason: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UserInputRequest:
    """What is the value."""

    run_id: str
    thread_id: str
    step: int
    prompt: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeferredDecision:
    """The answer comes later, under this token."""

    token: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """It may, or not."""

    kind: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class UserInputDecision:
    """The value, or none."""

    kind: str
    value: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRunEvent:
    """Something that happened."""

    type: str
    run_id: str
    thread_id: str
    state: str
    step: int | None = None
    message: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    schema_version: str = "v1"


@dataclass(frozen=True, slots=True)
class ToolExecutionRecord:
    """How a call ended."""

    tool_name: str
    tool_call_id: str | None
    success: bool
    output: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What a run came to."""

    run_id: str
    thread_id: str
    state: str
    final_text: str
    tool_executions: list[ToolExecutionRecord] = field(default_factory=list)
