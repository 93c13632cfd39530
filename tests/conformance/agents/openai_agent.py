"""An OpenAI Agents agent that refunds once, with the protocol's approvals and its state on disk."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agentapprovalprotocol.openai_agents import Approvals
from agents import Agent, FunctionTool, Model, ModelResponse, Usage, set_tracing_disabled
from agents.tool import function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from tests.conformance.agents.workspaces import Workspace

FRAMEWORK = "openai-agents"
set_tracing_disabled(True)


class Scripted(Model):
    """A model that requests the refund, then repeats its result."""

    def __init__(self, tool: str) -> None:
        self._tool = tool

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        if isinstance(last, dict) and last.get("type") == "function_call_output":
            return ModelResponse(output=[_text(f"Result: {last['output']}")], usage=Usage(), response_id=None)
        call = ResponseFunctionToolCall(
            type="function_call",
            call_id="call-1",
            name=self._tool,
            arguments=json.dumps({"order": "A-1", "amount": 20.5}),
        )
        return ModelResponse(output=[_text("The customer waits."), call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise AssertionError("nothing is streamed here")


def _text(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", content=[content], role="assistant", status="completed", type="message")


def _build(workspace: Workspace, mode: Any) -> tuple[Agent[None], Approvals]:
    def refund(order: str, amount: float) -> str:
        """Pay a customer back."""
        return workspace.record_effect(order=order, amount=amount)

    def save(_: str, state: str) -> None:
        workspace.path("state").write_text(state)

    def load(_: str) -> str:
        return workspace.path("state").read_text()

    tool: FunctionTool = function_tool(refund, name_override=workspace.tool)
    agent: Agent[None] = Agent(name="Support", tools=[tool], model=Scripted(workspace.tool))
    kept: Any = {"save": save, "load": load} if mode == "async" else {}
    approvals = Approvals(workspace.base_url, workspace.token, mode=mode, timeout=workspace.timeout, **kept)
    return approvals.protect(agent), approvals


async def start(workspace: Workspace, mode: str) -> None:
    """Run until the run is suspended or ends."""
    agent, approvals = _build(workspace, mode)
    result = await approvals.run(agent, "Refund A-1", run_id="run-1")
    if not result.interruptions:
        workspace.save_result(str(result.final_output))


@asynccontextmanager
async def resuming(workspace: Workspace) -> Any:
    """Yield the function that resumes the run."""
    agent, approvals = _build(workspace, "async")
    drive = approvals._drive

    async def drive_and_note(*args: Any) -> Any:
        result = await drive(*args)
        if not result.interruptions:
            workspace.save_result(str(result.final_output))
        return result

    approvals._drive = drive_and_note  # its resumer returns no result
    yield approvals.resumer(agent)
