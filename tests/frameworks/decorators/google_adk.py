"""Google ADK's tools over `gate`: functions of an agent, and `FunctionTool`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.local_runs import print_json


class Payer(BaseLlm):
    """Requests one transfer, then repeats its result."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        response = llm_request.contents[-1].parts[-1].function_response
        if response is not None:
            part = types.Part(text=str(response.response.get("result", response.response)))
        else:
            name = next(iter(llm_request.tools_dict))
            part = types.Part(function_call=types.FunctionCall(name=name, args={"to": "ann"}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    runner = InMemoryRunner(agent=LlmAgent(name="bot", model=Payer(model="played"), tools=[function]))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="ann")
    content = types.UserContent("Pay.")
    events = [event async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=content)]
    return events[-1].content.parts[0].text


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return functions that take the call's context."""

    def send_money(to: str, tool_context: ToolContext) -> str:
        """Send money to somebody."""
        return till.send(to)

    async def later(to: str, tool_context: ToolContext) -> str:
        """Send money to somebody."""
        return till.send(to if tool_context.function_call_id else "nobody")

    return {"with context": lambda: till.gate(send_money), "async with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, FunctionTool)))
