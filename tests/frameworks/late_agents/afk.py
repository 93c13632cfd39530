"""AFK agents that a gated tool gets only when it runs, with AFK's own runner if it is on the path."""

import asyncio
import inspect
from typing import Any

from pydantic import BaseModel

import sayso
from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.contracts import Agent, Runner, RunnerConfig, ToolCall, tool
from tests.frameworks.contracts.scripted import MemoryRows, ScriptedModel
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import DESK, Payers, pay, play_variants


class PayArgs(BaseModel):
    """The receiver."""

    to: str


@tool(args_model=PayArgs, name="send_money", description="Send money to somebody.")
async def send_money(args: PayArgs) -> str:
    return pay(args.to)


def make_model(name: str) -> ScriptedModel:
    """Return a model that requests one call, then repeats its result."""
    return ScriptedModel([ToolCall(id="c0", tool_name=name, arguments={"to": "ann"})])


def make_payer(*tools: Any) -> Any:
    """Return an agent that pays."""
    return Agent(name="payer", model=make_model("send_money"), instructions="Pay.", tools=[*(tools or [send_money])])


async def run(payer: Any, to: str) -> str:
    """Let an agent pay."""
    return str((await Runner(memory_store=MemoryRows()).run(payer, user_message=to)).final_text)


@tool(args_model=PayArgs, name="send_money", description="Send money to somebody, if a person approves.")
@sayso.gate(client=DESK.async_client(), name="send_money", quiet=True)
async def send_gated(args: PayArgs) -> str:
    return pay(args.to)


def make_tool(function: Any) -> Any:
    """Return a tool of AFK, which takes its arguments as a model."""

    async def call(args: PayArgs) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(args.to)
        return await asyncio.to_thread(function, args.to)

    return tool(args_model=PayArgs, name=function.__name__, description="Pay somebody.")(call)


def make(made: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    made = made if hasattr(made, "spec") else make_tool(made)
    rows = MemoryRows()

    def build(hooks: Hooks) -> tuple[Any, Any]:
        model, tools = make_model(made.spec.name), hooks.gate([made])
        agent = Agent(name="bot", model=model, instructions="Play.", tools=tools, policy_roles=[hooks.role])
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent

    return gate(build, name="bot", memory=lambda: rows)


async def main() -> None:
    """Play each variant."""
    payers = Payers("afk", make_payer, run, make, send_money, send_gated)
    print_json(await play_variants(payers, (), (type(send_money), Runner), (type(send_money), "call")))


if __name__ == "__main__":
    asyncio.run(main())
