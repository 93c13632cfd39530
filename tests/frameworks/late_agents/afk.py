"""AFK agents that a gated tool gets only when it runs, with AFK's own runner if it is on the path."""

import asyncio
from functools import cache
from typing import Any

from pydantic import BaseModel

import sayso
from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.contracts import Agent, Runner, RunnerConfig, ToolCall, tool
from tests.frameworks.contracts.scripted import MemoryRows, ScriptedModel
from tests.frameworks.edge_cases.local_runs import play, print_json
from tests.frameworks.late_agents.variants import (
    DESK,
    list_guarded,
    pay,
    play_all,
    play_beside,
    refuse_without,
    run_in_pool,
    run_in_thread,
)


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


@cache
def get_payer() -> Any:
    return make_payer()


async def run(payer: Any, to: str) -> str:
    """Let an agent pay."""
    return str((await Runner(memory_store=MemoryRows()).run(payer, user_message=to)).final_text)


async def built(args: PayArgs) -> str:
    """Pay through an agent made on the spot."""
    return await run(make_payer(), args.to)


async def cached(args: PayArgs) -> str:
    """Pay through an agent of a factory."""
    return await run(get_payer(), args.to)


async def imported(args: PayArgs) -> str:
    """Pay through an agent of another module."""
    from tests.frameworks.late_agents.payers import afk as payer

    return await run(payer, args.to)


def in_sync(args: PayArgs) -> str:
    """Pay through an agent, without awaiting it."""
    return run_in_thread(lambda: built(args))


def in_pool(args: PayArgs) -> str:
    """Pay through an agent in a pool of threads."""
    return run_in_pool(lambda: built(args))


@tool(args_model=PayArgs, name="send_money", description="Send money to somebody, if a person approves.")
@sayso.gate(client=DESK.async_client(), name="send_money", quiet=True)
async def send_gated(args: PayArgs) -> str:
    return pay(args.to)


async def gated_function(args: PayArgs) -> str:
    """Pay through an agent whose tool has a gate of its own."""
    return await run(make_payer(send_gated), args.to)


async def gated_agent(args: PayArgs) -> str:
    """Pay through an agent that is gated, too."""
    return str((await play(make(send_money)))["result"])


def make(made: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    made = made if hasattr(made, "spec") else tool(args_model=PayArgs, name=made.__name__)(made)
    rows = MemoryRows()

    def build(hooks: Hooks) -> tuple[Any, Any]:
        model, tools = make_model(made.spec.name), hooks.gate([made])
        agent = Agent(name="bot", model=model, instructions="Play.", tools=tools, policy_roles=[hooks.role])
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent

    return gate(build, name="bot", memory=lambda: rows)


async def main() -> None:
    """Play each variant."""
    started = asyncio.Event()

    async def wait(args: PayArgs) -> str:
        """Wait for an agent beside this one."""
        started.set()
        await asyncio.sleep(0)
        return args.to

    late = (built, cached, imported, in_sync, in_pool, gated_function, gated_agent)
    played = await play_all(make, {one.__name__: one for one in late})
    beside = await play_beside(make(wait), started, lambda: run(make_payer(), "ann"))
    guarded = list_guarded(type(send_money), Runner)
    changed = refuse_without(type(send_money), "call", lambda: make(send_money))
    print_json({"played": played, "beside": beside, "guarded": guarded, "changed": changed})


if __name__ == "__main__":
    asyncio.run(main())
