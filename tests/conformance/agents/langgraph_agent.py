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

from tests.conformance.agents.workspaces import Workspace

FRAMEWORK = "langgraph"
_SETTINGS: Any = {"configurable": {"thread_id": "thread-1"}}


class Scripted(BaseChatModel):
    """A model that requests the refund, then repeats its result."""

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
            reply = AIMessage(content=f"Result: {last.content}")
        else:
            call = {"name": self.tool, "args": {"order": "A-1", "amount": 20.5}, "id": "call-1"}
            reply = AIMessage(content="The customer waits.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@asynccontextmanager
async def _built(workspace: Workspace, mode: Any) -> Any:
    def refund(order: str, amount: float) -> str:
        """Pay a customer back."""
        return workspace.record_effect(order=order, amount=amount)

    async with AsyncSqliteSaver.from_conn_string(str(workspace.path("checkpoints.db"))) as saver:
        yield create_agent(
            Scripted(tool=workspace.tool),
            tools=[StructuredTool.from_function(refund, name=workspace.tool)],
            middleware=[ApprovalMiddleware(workspace.base_url, workspace.token, mode=mode, timeout=workspace.timeout)],
            checkpointer=saver,
        )


async def start(workspace: Workspace, mode: str) -> None:
    """Run until the run is suspended or ends."""
    async with _built(workspace, mode) as agent:
        state = await agent.ainvoke({"messages": [HumanMessage("Refund A-1")]}, _SETTINGS)
        if "__interrupt__" not in state:
            workspace.save_result(state["messages"][-1].content)


@asynccontextmanager
async def resuming(workspace: Workspace) -> Any:
    """Yield the function that resumes the run."""
    async with _built(workspace, "async") as agent:
        resume_run = resumer(agent)

        async def resume(handle: Any, request: Any) -> None:
            await resume_run(handle, request)
            state = await agent.aget_state(_SETTINGS)
            if not state.next:
                workspace.save_result(state.values["messages"][-1].content)

        yield resume
