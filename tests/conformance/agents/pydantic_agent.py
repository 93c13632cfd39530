"""A Pydantic AI agent that refunds once, with the protocol's capability and its conversation on disk."""

from contextlib import asynccontextmanager
from typing import Any

from agentapprovalprotocol.pydantic_ai import ApprovalCapability, resumer
from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.conformance.agents.places import Place

FRAMEWORK = "pydantic-ai"


def _build(place: Place, mode: Any) -> Agent[None, Any]:
    def refund(order: str, amount: float) -> str:
        """Pay a customer back."""
        return place.do(order=order, amount=amount)

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"Result: {last.content}")])
        call = ToolCallPart(place.tool, {"order": "A-1", "amount": 20.5}, tool_call_id="call-1")
        return ModelResponse(parts=[TextPart("The customer waits."), call])

    return Agent(
        FunctionModel(answer),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(refund, name=place.tool)],
        capabilities=[ApprovalCapability(place.base_url, place.token, mode=mode, timeout=place.timeout)],
    )


def _save(place: Place, conversation: Conversation) -> None:
    place.path("conversation").write_bytes(ConversationTypeAdapter.dump_json(conversation))


def _load(place: Place, _: str) -> Conversation:
    return ConversationTypeAdapter.validate_json(place.path("conversation").read_bytes())


async def start(place: Place, mode: str) -> None:
    """Run until it pauses or ends."""
    result = await _build(place, mode).run("Refund A-1")
    if isinstance(result.output, DeferredToolRequests):
        _save(place, result.conversation)
    else:
        place.end(result.output)


@asynccontextmanager
async def resuming(place: Place) -> Any:
    """Give what continues the run."""

    def save(conversation: Conversation) -> None:
        _save(place, conversation)
        if conversation.deferred_tool_requests is None:
            (text,) = [part.content for part in conversation.messages[-1].parts if isinstance(part, TextPart)]
            place.end(text)

    yield resumer(_build(place, "async"), load=lambda name: _load(place, name), save=save)
