"""Guard of AFK: the method `call` of its tools."""

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from sayso.errors import InvalidInput
from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import find_refusal, replace_once, was_gated

_NO_CALL = "The tool {name!r} of AFK has no async method call, so agents inside it could run unasked. Make it a Tool."

_AGENT: ContextVar[str | None] = ContextVar("sayso_afk_agent", default=None)


def install() -> None:
    """Guard the classes of `afk.tools` that have a method `call`."""
    kinds = [kind for kind in vars(import_module("afk.tools")).values() if inspect.isclass(kind) and _has_call(kind)]
    if not kinds:
        raise Changed("afk.tools has no class with an async method call")
    for kind in kinds:
        replace_once(kind, "call", _guard)
    runner = import_module("afk.core").Runner
    for name in ("run_handle", "resume_handle"):
        if not inspect.iscoroutinefunction(vars(runner).get(name)):
            raise Changed(f"afk.core.Runner has no async method {name}")
        replace_once(runner, name, _note_agent)


def guard_tools(tools: Sequence[Any]) -> None:
    """Guard the classes of these tools. Raises `InvalidInput` for a tool that is called in another way."""
    for tool in tools:
        kind = next((base for base in type(tool).__mro__ if _has_call(base)), None)
        if kind is None:
            raise InvalidInput(_NO_CALL.format(name=tool.spec.name))
        replace_once(kind, "call", _guard)


def _has_call(kind: type) -> bool:
    return inspect.iscoroutinefunction(vars(kind).get("call"))


def _note_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note whose run starts: AFK does not tell its tools."""

    async def start(runner: Any, agent: Any, *args: Any, **kwargs: Any) -> Any:
        token = _AGENT.set(getattr(agent, "name", None))
        try:
            return await original(runner, agent, *args, **kwargs)
        finally:
            _AGENT.reset(token)

    return start


def _guard(original: Callable[..., Any]) -> Callable[..., Any]:
    async def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
        refusal = find_refusal(tool.spec.name, _AGENT.get(), was_gated(getattr(tool, "fn", None)))
        if refusal is not None:  # AFK expects a result of every tool
            return import_module("afk.tools").ToolResult(success=False, error_message=refusal)
        return await original(tool, *args, **kwargs)

    return call
