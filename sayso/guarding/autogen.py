"""Guard of AutoGen: calls that an assistant executes, tools that other agents run, and code of models."""

import inspect
from collections.abc import Callable
from typing import Any

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_core.models import FunctionExecutionResult
from autogen_core.tools import BaseStreamTool, BaseTool, StaticWorkbench

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import admit, find_refusal, refuse_unseen, replace_once, was_gated

_CALL = ("tool_call", "workbench", "handoff_tools", "agent_name")


def install() -> None:
    """Guard each place at which AutoGen starts what a model has requested."""
    execute = inspect.signature(AssistantAgent._execute_tool_call).parameters
    if missing := [name for name in _CALL if name not in execute]:
        raise Changed(f"AssistantAgent._execute_tool_call has no parameter {missing[0]}")
    if "call_id" not in inspect.signature(BaseTool.run_json).parameters:
        raise Changed("BaseTool.run_json has no parameter call_id")
    replace_once(AssistantAgent, "_execute_tool_call", _guard_call)
    replace_once(BaseTool, "run_json", _guard_tool)
    replace_once(BaseStreamTool, "run_json_stream", _guard_stream)
    replace_once(CodeExecutorAgent, "execute_code_block", _guard_code)


def _guard_call(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    async def execute(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        call = given["tool_call"]
        hands_off = any(tool.name == call.name for tool in given["handoff_tools"])
        refusal = find_refusal(call.name, given["agent_name"], hands_off or _is_gated(given["workbench"], call.name))
        if refusal is not None:  # an error raised here would leave the agent waiting for ever
            return call, FunctionExecutionResult(content=refusal, call_id=call.id, is_error=True, name=call.name)
        with admit():
            return await original(*args, **kwargs)

    return execute


def _is_gated(workbenches: Any, name: str) -> bool:
    tools = [tool for workbench in workbenches if isinstance(workbench, StaticWorkbench) for tool in workbench._tools]
    return any(tool.name == name and was_gated(getattr(tool, "_func", None)) for tool in tools)


def _guard_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run_json(tool: Any, args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        if call_id is not None:  # code that calls a tool by itself gives no id
            refuse_unseen(tool.name, None, was_gated(getattr(tool, "_func", None)))
        return await original(tool, args, cancellation_token, call_id=call_id)

    return run_json


def _guard_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run_json_stream(tool: Any, args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        if call_id is not None:
            refuse_unseen(tool.name, None)
        async for part in original(tool, args, cancellation_token, call_id=call_id):
            yield part

    return run_json_stream


def _guard_code(original: Callable[..., Any]) -> Callable[..., Any]:
    async def execute_code_block(agent: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_unseen("Code of a model", agent.name)
        return await original(agent, *args, **kwargs)

    return execute_code_block
