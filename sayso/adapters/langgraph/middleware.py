"""Middleware around the tools of a LangChain agent: one requests approval, one runs calls through the gate."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from sayso.adapters.base import NOT_REVIEWED
from sayso.adapters.langgraph.checks import check_names
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.errors import IllegalTransition
from sayso.guarding.runs import admit
from sayso.runner.execution import current_executor
from sayso.runner.protocol import ToolFailed, describe_text

Mode = Literal["batched", "per_call"]

_INTERRUPTS = (
    "{name} interrupted the graph while it ran and was stopped, but calls are reviewed only before they start. "
    "Remove interrupt() and add a rule instead."
)


class ApprovalMiddleware(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Interrupt for every call. Threads wait at the node of its name, which is not `HumanInTheLoopMiddleware`."""

    def __init__(self, names: Iterable[str], mode: Mode, name: str = "HumanInTheLoopMiddleware") -> None:
        super().__init__(dict.fromkeys(names, True), interrupt_mode=mode)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


class GateMiddleware(AgentMiddleware[Any, Any]):
    """Run tools only through the gate, as the innermost middleware. A model that names an unknown tool gets a list."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Refuse tools that cannot be reviewed, and give each call a unique id."""
        check_names({tool.name for tool in request.tools if isinstance(tool, BaseTool)}, self._known)
        response = await handler(request)
        messages = [message for message in request.messages if isinstance(message, AIMessage)]
        used = {call["id"] for message in messages for call in message.tool_calls}
        result = [give_ids(part, used) if isinstance(part, AIMessage) else part for part in response.result]
        return replace(response, result=result)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        executor = current_executor()
        entry = executor.find(call["id"], call["name"]) if executor is not None else None
        if entry is None and request.tool is None:
            text = f"There is no tool named {call['name']!r}. There are: {', '.join(self._known)}."
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        if executor is None or entry is None:
            raise IllegalTransition(NOT_REVIEWED.format(name=call["name"]))
        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            message = await run_alone(call["name"], handler(request.override(tool_call={**call, "args": args})))
            native.append(message)
            if not isinstance(message, ToolMessage):
                return f"{call['name']} returned a {type(message).__name__} to the graph."
            if message.status == "error":
                raise ToolFailed(str(message.content))
            return message.content

        result = await executor.run(entry, execute)
        if native and result.success is (getattr(native[0], "status", "success") != "error"):
            return native[0]
        status = "success" if result.success else "error"
        return ToolMessage(describe_text(entry, result), tool_call_id=call["id"], name=call["name"], status=status)


def give_ids(message: AIMessage, used: set[str | None]) -> AIMessage:
    """Return the message with an id of its own for each call: of two calls with one id, only one would run."""
    calls = []
    for call in message.tool_calls:
        unique = call["id"] if call["id"] not in used else None
        calls.append(call.copy() | {"id": unique or new_id("call")})
        used.add(calls[-1]["id"])
    return message.model_copy(update={"tool_calls": calls})


async def run_alone(name: str, running: Any) -> Any:
    """Run a judged tool. Raises `ToolFailed` if it interrupts; other tools inside it are refused."""
    try:
        with admit():
            return await running
    except GraphBubbleUp as error:
        raise ToolFailed(_INTERRUPTS.format(name=name)) from error
