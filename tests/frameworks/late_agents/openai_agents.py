"""Agents of the OpenAI Agents SDK that a gated tool gets only when it runs."""

import asyncio
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    LocalShellTool,
    Model,
    ModelResponse,
    RunContextWrapper,
    Runner,
    Usage,
    function_tool,
)
from agents import tool as tools
from agents.run_internal import tool_actions, tool_execution
from agents.testing import assistant_message, function_call
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

from sayso.adapters.openai_agents import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.edge_cases.openai_agents_guarded import QUIET
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated


class Asker(Model):
    """Requests one call of the only tool, then repeats its result."""

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_args: Any, **_more: Any
    ) -> ModelResponse:
        results = [] if isinstance(input, str) else [str(one["output"]) for one in input if "output" in one]
        output: Any = assistant_message(results[0]) if results else self.request(tools[0])
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def request(self, tool: Any) -> Any:
        return function_call(tool.name, dict.fromkeys(tool.params_json_schema["properties"], "ann"), call_id="c0")

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


class Shell(Asker):
    """Requests a command of the shell."""

    def request(self, tool: Any) -> Any:
        action = LocalShellCallAction(command=["pay", "ann"], env={}, type="exec")
        return LocalShellCall(id="s0", action=action, call_id="c0", status="completed", type="local_shell_call")


@function_tool
def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any) -> Agent[Any]:
    """Return an agent that pays."""
    return Agent("payer", model=Asker(), tools=list(tools or [send_money]))


class Holder:
    """A context that holds an agent."""

    def __init__(self) -> None:
        self.payer = make_payer()


async def run(payer: Agent[Any], to: str) -> str:
    """Let an agent pay."""
    return str((await Runner.run(payer, to, run_config=QUIET)).final_output)


async def from_context(context: RunContextWrapper[Holder], to: str) -> str:
    """Pay through an agent of the context."""
    return await run(context.context.payer, to)


async def handed(to: str) -> str:
    """Pay through an agent that an agent without tools could hand off to."""
    return await run(Agent("front", model=Asker(), tools=[make_payer().as_tool("ask_payer", "Pays.")]), to)


async def shell(to: str) -> str:
    """Pay through a local tool that is no function tool."""
    tool = LocalShellTool(executor=lambda request: pay(" ".join(request.data.action.command)))
    return await run(Agent("payer", model=Shell(), tools=[tool]), to)


def make(tool: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    made = tool if isinstance(tool, FunctionTool) else function_tool(tool)
    agent = Agent[Any]("bot", model=Asker(), tools=[made])
    return gate(agent, name="bot", context=Holder, run_config=QUIET)


async def main() -> None:
    """Play each variant."""
    payers = Payers("openai_agents", make_payer, run, make, send_money, function_tool(send_gated))
    actions = [one for one in vars(tool_actions).values() if hasattr(one, "execute")]
    place = (tools, "_invoke_function_tool_with_metadata")
    print_json(await play_variants(payers, (from_context, handed, shell), (tools, tool_execution, *actions), place))


if __name__ == "__main__":
    asyncio.run(main())
