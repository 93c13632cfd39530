"""Guard of LangChain: tools that run for a call of a model, in any agent, graph or loop."""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.tracers.context import register_configure_hook

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import admit_unseen, note_model, refuse_unseen, replace_once, was_gated, was_model_asked


def install() -> None:
    """Guard `BaseTool.run` and `BaseTool.arun`."""
    for name in ("run", "arun"):
        if "tool_call_id" not in inspect.signature(getattr(BaseTool, name)).parameters:
            raise Changed(f"BaseTool.{name} has no parameter tool_call_id")
    replace_once(BaseTool, "run", _guard_run)
    replace_once(BaseTool, "arun", _guard_arun)


class _ModelWatch(BaseCallbackHandler):
    """Notes that a model was asked. Without an agent, code may run by hand what the model then requests."""

    raise_error = True
    run_inline = True

    def on_llm_start(self, *_args: Any, **_more: Any) -> None:
        note_model()

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
    if call_id is not None or was_model_asked():
        metadata = ensure_config().get("metadata") or {}
        refuse_unseen(tool.name, metadata.get("lc_agent_name"), was_gated(function) or admit_unseen(tool.name))


_WATCH = _ModelWatch()
register_configure_hook(ContextVar("sayso_langchain_watch", default=_WATCH), inheritable=True)
