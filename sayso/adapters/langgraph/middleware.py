"""What stands around the tools of a LangChain agent: the middleware that asks, and the one that lets a call begin."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

from sayso.adapters.langgraph.checks import check_names
from sayso.canonical_json import JsonObject
from sayso.clock import new_id
from sayso.errors import IllegalTransition
from sayso.runner.execution import current_executor
from sayso.runner.protocol import ToolFailed, describe_text

Mode = Literal["batched", "per_call"]

_INSIDE = (
    "{inner} was called inside {outer} and nobody was asked about it, so it was not run. "
    "Give it to the gated agent itself."
)
_INTERRUPTS = (
    "{name} interrupted the graph in the middle of its call and was broken off there; Sayso asks before a call "
    "alone. Take interrupt() out of it and ask by a rule."
)


class Asking(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Ask about every call of the tools; its name is that of the node at which threads wait.

    With a name of its own it can stand beside an agent's own `HumanInTheLoopMiddleware`, which is then refused.
    """

    def __init__(self, names: Iterable[str], mode: Mode, name: str = "HumanInTheLoopMiddleware") -> None:
        super().__init__(dict.fromkeys(names, True), interrupt_mode=mode)
        self._name = name

    @property
    def name(self) -> str:
        """The name that no other middleware of the agent may have."""
        return self._name


class Journalled(AgentMiddleware[Any, Any]):
    """Let a tool begin through the gate alone; it stands behind the questions, next to the tool.

    A name that the model made up is nobody's question: the model is told what there is.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Go on only while people can be asked about every tool shown; give calls an id each where a model does not."""
        check_names({one.name for one in request.tools if isinstance(one, BaseTool)}, self._known)
        response = await handler(request)
        used = {call["id"] for one in request.messages if isinstance(one, AIMessage) for call in one.tool_calls}
        said = [give_ids(one, used) if isinstance(one, AIMessage) else one for one in response.result]
        return replace(response, result=said)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run the call, with the arguments that were approved, once."""
        call = request.tool_call
        executor = current_executor()
        one = executor.find(call["id"], call["name"]) if executor is not None else None
        if one is None and request.tool is None:
            words = f"There is no tool named {call['name']!r}. There are: {', '.join(self._known)}."
            return ToolMessage(words, tool_call_id=call["id"], name=call["name"], status="error")
        if executor is None or one is None:
            raise IllegalTransition(f"Nobody was asked about this call of {call['name']}; it is not run.")
        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            message = await run_alone(call["name"], handler(request.override(tool_call={**call, "args": args})))
            native.append(message)
            if not isinstance(message, ToolMessage):
                return f"{call['name']} gave the graph a {type(message).__name__}."
            if message.status == "error":
                raise ToolFailed(str(message.content))
            return message.content

        result = await executor.run(one, execute)
        if native:
            return native[0]
        status = "success" if result.success else "error"
        return ToolMessage(describe_text(one, result), tool_call_id=call["id"], name=call["name"], status=status)


def give_ids(message: AIMessage, used: set[str | None]) -> AIMessage:
    """Return the message with an id of its own for each call that has none, or one that another call has.

    The graph and its middleware know a call by its id alone: of two with one id only one would run.
    """
    calls = []
    for call in message.tool_calls:
        known = call["id"] if call["id"] not in used else None
        calls.append(call.copy() | {"id": known or new_id("call")})
        used.add(calls[-1]["id"])
    return message.model_copy(update={"tool_calls": calls})


async def run_alone(name: str, started: Any) -> Any:
    """Run a tool, and none that an agent inside of it calls. Raises `ToolFailed` for one that does more than run."""
    watch = _Watch(name)
    with _watching(watch):
        try:
            message = await started
        except GraphBubbleUp as error:
            raise ToolFailed(_INTERRUPTS.format(name=name)) from error
    if watch.refused is not None:
        raise ToolFailed(watch.refused)
    return message


class _Watch(BaseCallbackHandler):
    """Refuses every tool that a model inside of a tool has called; the first tool to start is the approved one."""

    raise_error = True
    run_inline = True

    def __init__(self, outer: str) -> None:
        self.refused: str | None = None
        self._outer = outer
        self._begun = False
        self._has_model = False

    def on_chat_model_start(self, *_args: Any, **_more: Any) -> None:
        """Note that a model is asked inside of the tool."""
        self._has_model = True

    def on_llm_start(self, *_args: Any, **_more: Any) -> None:
        """Note that a model is asked inside of the tool."""
        self._has_model = True

    def on_tool_start(
        self, serialized: dict[str, Any] | None, _input: str, *, tool_call_id: str | None = None, **_more: Any
    ) -> None:
        """Raise `ToolFailed` for a tool that a model inside of the approved one has called."""
        if not self._begun:
            self._begun = True
            return
        if self._has_model or tool_call_id is not None:
            inner = (serialized or {}).get("name", "A tool")
            self.refused = _INSIDE.format(inner=inner, outer=self._outer)
            raise ToolFailed(self.refused)


_WATCH: ContextVar[_Watch | None] = ContextVar("sayso_langchain_watch", default=None)
register_configure_hook(_WATCH, inheritable=True)


@contextmanager
def _watching(watch: _Watch) -> Iterator[None]:
    """Have LangChain tell the watch of everything that starts within the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)
