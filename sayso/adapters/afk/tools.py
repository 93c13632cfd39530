"""Stand around AFK's tools: a copy of each that asks first, with the tool itself behind it."""

import copy
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sayso.canonical_json import JsonObject
from sayso.records.tool_calls import ToolDefinition

_DEFERRED = "afk_deferred"


@dataclass(frozen=True)
class Called:
    """A call of a tool, as AFK makes it."""

    tool: Any
    args: JsonObject
    ctx: Any = None
    timeout_s: float | None = None
    call_id: str | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.tool.spec.name)

    async def run(self, args: JsonObject) -> Any:
        """Run the tool itself with these arguments and return AFK's result."""
        limit_s = self.timeout_s if self.timeout_s is not None else self.tool.default_timeout
        return await self.tool.call(dict(args), ctx=self.ctx, timeout=limit_s, tool_call_id=self.call_id)


def wrap_tools(tools: Sequence[Any], run: Callable[[Called], Awaitable[Any]]) -> list[Any]:
    """Return copies of the tools whose calls go through `run`, which sees to their time-outs."""
    return [_wrap(tool, run) for tool in tools]


def find_tools(tools: Sequence[Any]) -> list[Any]:
    """Return the tools themselves, made where AFK is given what makes them."""
    return [one if hasattr(one, "spec") else one() for one in tools]


def define_tool(tool: Any, idempotent: Collection[str]) -> ToolDefinition:
    """Return how a tool describes itself."""
    spec = tool.spec
    return ToolDefinition(
        name=spec.name,
        description=spec.description or "",
        parameters=spec.parameters_schema,
        idempotent=spec.name in idempotent,
    )


def write_deferred(handle: Any) -> JsonObject:
    """Return a ticket that a tool gave as what the call came to, so that it can be given again."""
    names = ("ticket_id", "tool_name", "status", "poll_after_s", "summary", "resume_hint")
    return {_DEFERRED: {name: getattr(handle, name) for name in names}}


def read_deferred(output: Any) -> Any:
    """Return the ticket's fields where the call came to one, or None."""
    return output[_DEFERRED] if isinstance(output, dict) and output.keys() == {_DEFERRED} else None


def _wrap(tool: Any, run: Callable[[Called], Awaitable[Any]]) -> Any:
    async def call(
        raw_args: JsonObject,
        *,
        ctx: Any = None,
        timeout: float | None = None,  # noqa: ASYNC109 - so AFK calls it
        tool_call_id: str | None = None,
    ) -> Any:
        return await run(Called(tool, raw_args, ctx, timeout, tool_call_id))

    wrapped = copy.copy(tool)
    wrapped.call, wrapped.default_timeout = call, None
    return wrapped
