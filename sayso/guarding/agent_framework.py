"""Guard of Microsoft's Agent Framework: the method that runs a tool for a call of a model."""

import inspect
from collections.abc import Callable
from typing import Any

from agent_framework import FunctionTool, MiddlewareFailure

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import find_refusal, replace_once, was_gated


def install() -> None:
    """Guard `FunctionTool.invoke`."""
    if "tool_call_id" not in inspect.signature(FunctionTool.invoke).parameters:
        raise Changed("FunctionTool.invoke has no parameter tool_call_id")
    replace_once(FunctionTool, "invoke", _guard)


def _guard(original: Callable[..., Any]) -> Callable[..., Any]:
    async def invoke(tool: Any, *, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        if tool_call_id is not None:  # code that calls a tool by itself gives no id
            refusal = find_refusal(tool.name, None, was_gated(tool.func))
            if refusal is not None:  # the framework would give any other error to the model, without its text
                raise MiddlewareFailure(refusal)
        return await original(tool, tool_call_id=tool_call_id, **kwargs)

    return invoke
