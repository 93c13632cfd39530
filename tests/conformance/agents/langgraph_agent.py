"""A LangChain agent on LangGraph that refunds once, with the protocol's middleware and a checkpointer on disk."""

from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

from agentapprovalprotocol.langgraph import ApprovalMiddleware, resumer
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.conformance.agents.places import Place

FRAMEWORK = "langgraph"
_SETTINGS: Any = {"configurable": {"thread_id": "thread-1"}}


class Scripted(BaseChatModel):
    """Asks for the refund, then repeats what came of it."""

    tool: str

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            said = AIMessage(content=f"Result: {last.content}")
        else:
            call = {"name": self.tool, "args": {"order": "A-1", "amount": 20.5}, "id": "call-1"}
            said = AIMessage(content="The customer waits.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


@asynccontextmanager
async def _built(place: Place, mode: Any) -> Any:
    def refund(order: str, amount: float) -> str:
        """Pay a customer back."""
        return place.do(order=order, amount=amount)

    async with AsyncSqliteSaver.from_conn_string(str(place.path("checkpoints.db"))) as saver:
        yield create_agent(
            Scripted(tool=place.tool),
            tools=[StructuredTool.from_function(refund, name=place.tool)],
            middleware=[ApprovalMiddleware(place.base_url, place.token, mode=mode, timeout=place.timeout)],
            checkpointer=saver,
        )


async def start(place: Place, mode: str) -> None:
    """Run until it pauses or ends."""
    async with _built(place, mode) as agent:
        state = await agent.ainvoke({"messages": [HumanMessage("Refund A-1")]}, _SETTINGS)
        if "__interrupt__" not in state:
            place.end(state["messages"][-1].content)


@asynccontextmanager
async def resuming(place: Place) -> Any:
    """Give what continues the run."""
    async with _built(place, "async") as agent:
        go_on = resumer(agent)

        async def resume(handle: Any, request: Any) -> None:
            await go_on(handle, request)
            state = await agent.aget_state(_SETTINGS)
            if not state.next:
                place.end(state.values["messages"][-1].content)

        yield resume
