"""Agents of Google ADK that a gated tool gets only when it runs."""

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from sayso.adapters.google_adk import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated

_FLOW = "google.adk.flows.llm_flows."
CALLER = import_module(_FLOW + "tools._caller")
LIVE_CALLER = import_module(_FLOW + "tools._live_caller")
CODE = import_module(_FLOW + "extensions._code_execution")


class Asker(BaseLlm):
    """Requests one call of the only tool, then repeats its result."""

    model: str = "player"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        response = (llm_request.contents[-1].parts or [types.Part()])[-1].function_response
        names = [name for name in llm_request.tools_dict if name != "transfer_to_agent"]
        args: dict[str, Any] = {"to": "ann"}
        if not names:
            names, args = ["transfer_to_agent"], {"agent_name": "other"}
        part = types.Part(function_call=types.FunctionCall(name=names[0], args=args))
        if response is not None:
            results: Any = response.response
            part = types.Part(text=str(results.get("result", results)))
        yield LlmResponse(content=types.ModelContent([part]))


class Coder(BaseLlm):
    """Writes code that pays."""

    model: str = "player"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.ModelContent("```tool_code\npay()\n```"))


class Speaker(BaseLlm):
    """Answers at once."""

    model: str = "player"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.ModelContent("spoken"))


def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any) -> LlmAgent:
    """Return an agent that pays."""
    return LlmAgent(name="payer", model=Asker(), tools=list(tools or [send_money]))


async def run(payer: Any, to: str) -> str:
    """Let an agent pay."""
    runner = InMemoryRunner(app=App(name="payers", root_agent=payer))
    session = await runner.session_service.create_session(app_name="payers", user_id="ann")
    stream = runner.run_async(user_id="ann", session_id=session.id, new_message=types.UserContent(to))
    events = [event async for event in stream]
    return f"{events[-1].author}: {events[-1].content.parts[0].text}"


async def from_context(to: str, tool_context: ToolContext) -> str:
    """Pay through an agent that runs as a tool, in the context of this call."""
    payer = AgentTool(make_payer())
    return str(await payer.run_async(args={"request": to}, tool_context=tool_context))


async def code(to: str) -> str:
    """Pay by code that a model wrote."""
    return await run(LlmAgent(name="payer", model=Coder(), code_executor=UnsafeLocalCodeExecutor()), to)


async def by_code(to: str) -> str:
    """Pay as this code says."""
    context: Any = None
    return str(await FunctionTool(send_money).run_async(args={"to": to}, tool_context=context))


async def hand_off(to: str) -> str:
    """Ask agents without tools, of which one hands off to the other."""
    other = LlmAgent(name="other", model=Speaker())
    return await run(LlmAgent(name="first", model=Asker(), sub_agents=[other]), to)


def make(tool: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    return gate(make_payer(tool), name="bot")


async def main() -> None:
    """Play each variant."""
    payers = Payers("google_adk", make_payer, run, make, send_money, send_gated)
    place = (CALLER, "_call_tool_async")
    more = (from_context, code, by_code, hand_off)
    print_json(await play_variants(payers, more, (CALLER, LIVE_CALLER, CODE), place))


if __name__ == "__main__":
    asyncio.run(main())
