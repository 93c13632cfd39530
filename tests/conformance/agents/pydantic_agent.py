"""A Pydantic AI agent that refunds once, with the protocol's capability and its conversation on disk."""

from contextlib import asynccontextmanager
from typing import Any

from agentapprovalprotocol.pydantic_ai import ApprovalCapability, resumer
from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.conformance.agents.workspaces import Workspace

FRAMEWORK = "pydantic-ai"


def _build(workspace: Workspace, mode: Any) -> Agent[None, Any]:
    def refund(order: str, amount: float) -> str:
        """Pay a customer back."""
        return workspace.record_effect(order=order, amount=amount)

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"Result: {last.content}")])
        call = ToolCallPart(workspace.tool, {"order": "A-1", "amount": 20.5}, tool_call_id="call-1")
        return ModelResponse(parts=[TextPart("The customer waits."), call])

    return Agent(
        FunctionModel(answer),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(refund, name=workspace.tool)],
        capabilities=[ApprovalCapability(workspace.base_url, workspace.token, mode=mode, timeout=workspace.timeout)],
    )


def _save(workspace: Workspace, conversation: Conversation) -> None:
    workspace.path("conversation").write_bytes(ConversationTypeAdapter.dump_json(conversation))


def _load(workspace: Workspace, _: str) -> Conversation:
    return ConversationTypeAdapter.validate_json(workspace.path("conversation").read_bytes())


async def start(workspace: Workspace, mode: str) -> None:
    """Run until the run is suspended or ends."""
    result = await _build(workspace, mode).run("Refund A-1")
    if isinstance(result.output, DeferredToolRequests):
        _save(workspace, result.conversation)
    else:
        workspace.save_result(result.output)


@asynccontextmanager
async def resuming(workspace: Workspace) -> Any:
    """Yield the function that resumes the run."""

    def save(conversation: Conversation) -> None:
        _save(workspace, conversation)
        if conversation.deferred_tool_requests is None:
            (text,) = [part.content for part in conversation.messages[-1].parts if isinstance(part, TextPart)]
            workspace.save_result(text)

    yield resumer(_build(workspace, "async"), load=lambda name: _load(workspace, name), save=save)
