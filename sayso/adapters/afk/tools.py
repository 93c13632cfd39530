"""Copies of AFK's tools whose calls go through Sayso. Answers of any class but AFK's own count as approval there."""

import copy
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from sayso.adapters import base
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput
from sayso.guarding.afk import guard_tools
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import admit

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


_DEFERRED = "afk_deferred"


@dataclass(frozen=True)
class AfkCall:
    """A call of a tool, as AFK makes it."""

    tool: Any
    args: JsonObject
    ctx: Any = None
    timeout_s: float | None = None
    call_id: str | None = None

    @property
    def name(self) -> str:
        return str(self.tool.spec.name)

    async def run(self, args: JsonObject) -> Any:
        limit_s = self.timeout_s if self.timeout_s is not None else self.tool.default_timeout
        with admit():
            return await self.tool.call(dict(args), ctx=self.ctx, timeout=limit_s, tool_call_id=self.call_id)


def wrap_tools(tools: Sequence[Any], run: Callable[[AfkCall], Awaitable[Any]]) -> list[Any]:
    """Return copies of the tools whose calls go through `run`, with their timeouts; raises `InvalidInput`."""
    guard_framework("afk")
    guard_tools(tools)
    return [_wrap(tool, run) for tool in tools]


def find_tools(tools: Sequence[Any]) -> list[Any]:
    """Return the tools. Factories are called."""
    return [tool if hasattr(tool, "spec") else tool() for tool in tools]


def define_tool(tool: Any, idempotent: Collection[str]) -> ToolDefinition:
    """Return the definition of a tool."""
    return base.define_tool(tool.spec.name, tool.spec.description, tool.spec.parameters_schema, idempotent)


def write_deferred(handle: Any) -> JsonObject:
    """Return a tool's background ticket as the output of its call."""
    names = ("ticket_id", "tool_name", "status", "poll_after_s", "summary", "resume_hint")
    return {_DEFERRED: {name: getattr(handle, name) for name in names}}


def read_deferred(output: Any) -> Any:
    """Return the fields of a ticket, or None for other output."""
    return output[_DEFERRED] if isinstance(output, dict) and output.keys() == {_DEFERRED} else None


def _wrap(tool: Any, run: Callable[[AfkCall], Awaitable[Any]]) -> Any:
    async def call(
        raw_args: JsonObject,
        *,
        ctx: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 - AFK's signature
        tool_call_id: str | None = None,
    ) -> Any:
        return await run(AfkCall(tool, raw_args, ctx, timeout, tool_call_id))

    wrapped = copy.copy(tool)
    wrapped.call, wrapped.default_timeout = call, None
    return wrapped
