"""Guard of Google ADK: the functions that call a tool of a model, and the steps that run a model's code."""

import inspect
import sys
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import refuse_unseen, replace_once, was_gated

_FLOW = "google.adk.flows.llm_flows."
_CALLERS = {"tools._caller": "_call_tool_async", "tools._thread_pool": "_call_tool_in_thread_pool"}
_CODE = ("_run_pre_processor", "_run_post_processor")

CONTROLS = (SetModelResponseTool, TransferToAgentTool)
"""Tools of ADK itself that only say which agent speaks next, or what the agent answers."""


def install() -> None:
    """Guard each place at which ADK starts what a model has requested."""
    for module, name in _CALLERS.items():
        callers = import_module(_FLOW + module)
        plain = inspect.unwrap(getattr(callers, name))
        if not inspect.iscoroutinefunction(plain) or "tool" not in inspect.signature(plain).parameters:
            raise Changed(f"{callers.__name__} has no async function {name} with a parameter tool")
        _replace(callers, name, _guard_call)
    code = import_module(_FLOW + "extensions._code_execution")
    for name in _CODE:
        _replace(code, name, _guard_code)


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace a function in its module, and in the modules of ADK that imported it by name."""
    replace_once(owner, name, wrap)
    guard = getattr(owner, name)
    for module in [module for path, module in sys.modules.items() if path.startswith(_FLOW)]:
        if vars(module).get(name) is guard.__wrapped__:
            setattr(module, name, guard)


def _guard_call(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    async def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        tool, agent = given["tool"], getattr(given.get("tool_context"), "agent_name", None)
        seen = was_gated(tool) or was_gated(getattr(tool, "func", None)) or isinstance(tool, CONTROLS)
        refuse_unseen(tool.name, agent, seen)
        return await original(*args, **kwargs)

    return call


def _guard_code(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(invocation_context: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        agent = invocation_context.agent
        executor = getattr(agent, "code_executor", None)
        if executor is not None and not isinstance(executor, BuiltInCodeExecutor):  # that one runs at the provider
            refuse_unseen("Code of a model", agent.name)
        async for event in original(invocation_context, *args, **kwargs):
            yield event

    return run
