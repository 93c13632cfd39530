"""Guard of CrewAI: the hooks that run before each tool call of a model, and tools that a model's client runs itself."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from crewai.hooks import tool_hooks
from crewai.llm import LLM
from crewai.llms.base_llm import BaseLLM

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import refuse_unseen, replace_once, was_gated

_HOOKS = "run_before_tool_call_hooks"
_CALLERS = ("crewai.agents.agent_executor", "crewai.utilities.tool_utils")


def install() -> None:
    """Guard each place at which CrewAI starts what a model has requested."""
    for name in _CALLERS:
        if not hasattr(import_module(name), _HOOKS):
            raise Changed(f"{name} no longer calls {_HOOKS}")
    replace_once(tool_hooks, _HOOKS, _guard_hooks)
    guard = getattr(tool_hooks, _HOOKS)
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "crewai"]:
        if vars(module).get(_HOOKS) is guard.__wrapped__:
            setattr(module, _HOOKS, guard)
    replace_once(BaseLLM, "_handle_tool_execution", _guard_client)
    replace_once(LLM, "_handle_tool_call", _guard_litellm)


def _guard_hooks(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(context: Any, *args: Any, **kwargs: Any) -> Any:
        tool = context.tool
        if tool is not None:  # CrewAI answers a call of an unknown tool itself
            owner = getattr(context.agent, "role", None)
            refuse_unseen(context.tool_name, owner, _is_seen(tool) or _is_seen(getattr(tool, "_original_tool", None)))
        return original(context, *args, **kwargs)

    return run


def _guard_client(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute(client: Any, function_name: str, function_args: Any, available_functions: Any, **kwargs: Any) -> Any:
        _check_functions([function_name], available_functions)
        return original(client, function_name, function_args, available_functions, **kwargs)

    return execute


def _guard_litellm(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute(client: Any, tool_calls: Any, available_functions: Any = None, *args: Any, **kwargs: Any) -> Any:
        if tool_calls:
            _check_functions(available_functions or (), available_functions)
        return original(client, tool_calls, available_functions, *args, **kwargs)

    return execute


def _check_functions(names: Iterable[str], functions: Any) -> None:
    """Raise `UnseenTool` for a function without a gate that the client of a model runs for it."""
    for name in names:
        function = functions.get(name)
        if function is not None:
            refuse_unseen(name, None, was_gated(function) or _is_seen(getattr(function, "__self__", None)))


def _is_seen(tool: Any) -> bool:
    return was_gated(tool) or was_gated(getattr(tool, "func", None))
