"""Tools: a function with a model of its arguments."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is shown."""

    name: str
    description: str
    parameters_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of its run."""

    request_id: str | None = None
    user_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolDeferredHandle:
    """The call goes on in the background."""

    ticket_id: str
    tool_name: str
    status: str = "pending"
    poll_after_s: float | None = None
    summary: str | None = None
    resume_hint: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How a call ended."""

    output: Any = None
    success: bool = True
    error_message: str | None = None
    tool_name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tool_call_id: str | None = None
    deferred: ToolDeferredHandle | None = None


class Tool:
    """A function behind its arguments' model; what it raises is a result that failed."""

    def __init__(self, spec: ToolSpec, fn: Callable[..., Any], args_model: type[BaseModel]) -> None:
        self.spec = spec
        self.fn = fn
        self.args_model = args_model
        self.default_timeout: float | None = None

    async def call(
        self,
        raw_args: dict[str, Any],
        *,
        ctx: ToolContext | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - so it is called
        tool_call_id: str | None = None,
    ) -> ToolResult:
        """Run it."""
        try:
            given: list[Any] = [self.args_model.model_validate(raw_args)]
            if len(inspect.signature(self.fn).parameters) > 1:
                given.append(ctx or ToolContext())
            coming = self.fn(*given) if inspect.iscoroutinefunction(self.fn) else asyncio.to_thread(self.fn, *given)
            output = await asyncio.wait_for(coming, timeout or self.default_timeout)
        except Exception as error:  # noqa: BLE001 - it is the call's result
            return ToolResult(success=False, error_message=f"Error executing tool '{self.spec.name}': {error}")
        if isinstance(output, ToolResult):
            return replace(output, tool_name=self.spec.name, tool_call_id=tool_call_id)
        return ToolResult(output=output, tool_name=self.spec.name, tool_call_id=tool_call_id)


def tool(
    *, args_model: type[BaseModel], name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function."""

    def decorate(fn: Callable[..., Any]) -> Tool:
        words = description or inspect.getdoc(fn) or fn.__name__
        return Tool(ToolSpec(name or fn.__name__, words, args_model.model_json_schema()), fn, args_model)

    return decorate
