"""Find AFK's own classes: it takes an answer in any others for leave, or for no answer at all."""

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
"""The `policy_id` of every decision that AFK is given by Sayso."""


@dataclass(frozen=True)
class Words:
    """What AFK is answered in."""

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
        """Return whether AFK failed the run itself, for a reason that a retry meets again."""
        passes = (self.agent_retryable_error, self.agent_circuit_open_error)
        return isinstance(error, self.agent_error) and not isinstance(error, passes)

    def allow(self, args: Any = None) -> Any:
        """Let it go on; a call with these arguments, where there are some."""
        return self.policy_decision(action="allow", updated_tool_args=args)

    def deny(self, reason: str) -> Any:
        """Let it not go on; the model is told why."""
        return self.policy_decision(action="deny", reason=reason, policy_id=POLICY_ID)

    def fail(self, error: str) -> Any:
        """Return the result of a call that failed, or did not run."""
        return self.tool_result(success=False, error_message=error)


@cache
def load_words() -> Words:
    """Return AFK's classes; raises `InvalidInput` where it is not on the path."""
    try:
        found = [getattr(import_module(module), name) for module, names in _CLASSES.items() for name in names]
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"AFK cannot be imported here: {error}. It is on no package index (the package `afk` there is another "
            "program); put its checkout on the path."
        ) from error
    return Words(*found)
