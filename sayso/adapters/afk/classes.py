"""AFK's own classes. AFK treats an answer of any other class as approval, or as no answer."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from sayso.errors import InvalidInput

_CLASSES = {
    "afk.agents.types": ("PolicyDecision", "ApprovalDecision", "UserInputDecision", "DeferredDecision"),
    "afk.tools": ("ToolResult", "ToolDeferredHandle"),
    "afk.agents.errors": ("AgentError", "AgentRetryableError", "AgentCircuitOpenError"),
}

POLICY_ID = "sayso"
"""The `policy_id` of every decision from Sayso."""


@dataclass(frozen=True)
class AfkTypes:
    """The classes of answers that AFK expects."""

    policy_decision: Any
    approval_decision: Any
    user_input_decision: Any
    deferred_decision: Any
    tool_result: Any
    tool_deferred_handle: Any
    agent_error: Any
    agent_retryable_error: Any
    agent_circuit_open_error: Any

    def ends_run(self, error: Exception) -> bool:
        """Return whether AFK failed the run for a reason that a retry cannot fix."""
        temporary = (self.agent_retryable_error, self.agent_circuit_open_error)
        return isinstance(error, self.agent_error) and not isinstance(error, temporary)

    def allow(self, args: Any = None) -> Any:
        return self.policy_decision(action="allow", updated_tool_args=args)

    def deny(self, reason: str) -> Any:
        return self.policy_decision(action="deny", reason=reason, policy_id=POLICY_ID)

    def fail(self, error: str) -> Any:
        return self.tool_result(success=False, error_message=error)


@cache
def load_types() -> AfkTypes:
    """Return AFK's classes. Raises `InvalidInput` if AFK cannot be imported."""
    try:
        classes = [getattr(import_module(module), name) for module, names in _CLASSES.items() for name in names]
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"AFK cannot be imported: {error}. Put its checkout on the path: it is not on PyPI, where `afk` is another "
            "program."
        ) from error
    return AfkTypes(*classes)
