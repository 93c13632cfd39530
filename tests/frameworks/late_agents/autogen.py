"""AutoGen agents that a gated tool gets only when it runs."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import CancellationToken, FunctionCall
from autogen_core.code_executor import CodeBlock, CodeResult
from autogen_core.models import CreateResult, FunctionExecutionResultMessage
from autogen_core.tools import BaseStreamTool, BaseTool, FunctionTool
from autogen_ext.models.replay import ReplayChatCompletionClient

from sayso.adapters.autogen import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.autogen import INFO, NO_USAGE
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated


class Asker(ReplayChatCompletionClient):
    """Requests one call of the only tool, then repeats its result."""

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_more: Any) -> CreateResult:
        if not tools or isinstance(messages[-1], FunctionExecutionResultMessage):
            results = messages[-1].content
            text = results if isinstance(results, str) else results[0].content
            return CreateResult(finish_reason="stop", content=text, usage=NO_USAGE, cached=False)
        name = tools[0]["name"] if isinstance(tools[0], dict) else tools[0].name
        arguments = {} if name.startswith("transfer") else {"to": "ann"}
        call = FunctionCall(id="c0", name=name, arguments=json.dumps(arguments))
        return CreateResult(finish_reason="function_calls", content=[call], usage=NO_USAGE, cached=False)


class Executor:
    """Runs code: pays."""

    timeout = 5.0

    async def execute_code_blocks(self, code_blocks: list[CodeBlock], cancellation_token: Any) -> CodeResult:
        return CodeResult(exit_code=0, output=pay("ann"))


def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any, **options: Any) -> AssistantAgent:
    """Return an agent that pays."""
    given = {"tools": list(tools or [send_money]), "reflect_on_tool_use": True, **options}
    return AssistantAgent("payer", Asker([], INFO), **given)


async def run(payer: Any, to: str) -> str:
    """Let an agent or a team pay."""
    return str((await payer.run(task=to)).messages[-1].to_text())


async def team(to: str) -> str:
    """Pay through a team."""
    return await run(RoundRobinGroupChat([make_payer()], termination_condition=MaxMessageTermination(3)), to)


async def tool_of_code(to: str) -> str:
    """Pay as another kind of agent does, which runs its tools itself."""
    tool = FunctionTool(send_money, description="Send money to somebody.")
    return str(await tool.run_json({"to": to}, CancellationToken(), call_id="c0"))


async def code(to: str) -> str:
    """Pay by code that a model wrote."""
    agent = CodeExecutorAgent("payer", Executor())
    message = TextMessage(content="```python\npay()\n```", source="user")
    return str((await agent.on_messages([message], CancellationToken())).chat_message)


async def by_code(to: str) -> str:
    """Pay as this code says."""
    tool = FunctionTool(send_money, description="Send money to somebody.")
    return str(await tool.run_json({"to": to}, CancellationToken()))


async def hand_off(to: str) -> str:
    """Ask agents without tools, of which one hands off to the other."""
    first = make_payer(tools=[], handoffs=["other"], reflect_on_tool_use=False)
    other = AssistantAgent("other", Asker([], INFO))
    swarm = Swarm([first, other], termination_condition=MaxMessageTermination(5))
    return " ".join(message.source for message in (await swarm.run(task=to)).messages)


def make(tool: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    return gate(lambda gated: gated(make_payer(tool)), name="bot")


async def main() -> None:
    """Play each variant."""
    gated = FunctionTool(send_gated, description="Pays.", name="send_money")
    payers = Payers("autogen", make_payer, run, make, send_money, gated)
    guarded = (AssistantAgent, BaseTool, BaseStreamTool, CodeExecutorAgent)
    place = (AssistantAgent, "_execute_tool_call")
    print_json(await play_variants(payers, (team, tool_of_code, code, by_code, hand_off), guarded, place))


if __name__ == "__main__":
    asyncio.run(main())
