"""Guard of LangChain: tools that run for a call of a model, in any agent, graph or loop."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.tracers.context import register_configure_hook

from sayso.adapters.guards import Changed
from sayso.guarding import admit, carry_into_threads, refuse_unseen, replace_once, was_gated
from sayso.runner.execution import current_executor


def install() -> None:
    """Guard `BaseTool.run` and `BaseTool.arun`."""
    for name in ("run", "arun"):
        if "tool_call_id" not in inspect.signature(getattr(BaseTool, name)).parameters:
            raise Changed(f"BaseTool.{name} has no parameter tool_call_id")
    replace_once(BaseTool, "run", _guard_run)
    replace_once(BaseTool, "arun", _guard_arun)
    carry_into_threads(_WATCH)


@contextmanager
def watch_models() -> Iterator[None]:
    """Admit one tool, the judged one. After a model was asked inside it, it may call no other, even by hand."""
    token = _WATCH.set(_Watch())
    try:
        with admit():
            yield
    finally:
        _WATCH.reset(token)


class _Watch(BaseCallbackHandler):
    """Notes that a model was asked."""

    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self.asked = False

    def on_llm_start(self, *_args: Any, **_more: Any) -> None:
        self.asked = True

    on_chat_model_start = on_llm_start


def _guard_run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(tool: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        _check(tool, tool_call_id, getattr(tool, "func", None))
        return original(tool, *args, tool_call_id=tool_call_id, **kwargs)

    return run


def _guard_arun(original: Callable[..., Any]) -> Callable[..., Any]:
    async def arun(tool: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        _check(tool, tool_call_id, getattr(tool, "coroutine", None) or getattr(tool, "func", None))
        return await original(tool, *args, tool_call_id=tool_call_id, **kwargs)

    return arun


def _check(tool: Any, call_id: str | None, function: Any) -> None:
    watch = _WATCH.get()
    if call_id is not None or (watch is not None and watch.asked):
        metadata, executor = ensure_config().get("metadata") or {}, current_executor()
        seen = was_gated(function) or (executor is not None and executor.admit_unseen(tool.name))
        refuse_unseen(tool.name, metadata.get("lc_agent_name"), seen)


_WATCH: ContextVar[_Watch | None] = ContextVar("sayso_langchain_watch", default=None)
register_configure_hook(_WATCH, inheritable=True)
