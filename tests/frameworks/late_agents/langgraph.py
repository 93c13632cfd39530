"""LangChain agents that a gated tool gets only when it runs."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.types import interrupt

from sayso.adapters.langgraph import gate, sqlite
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.langgraph import Asker, called
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_all, play_variants, run_in_thread, send_gated


@tool
def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any) -> Any:
    """Return an agent that pays."""
    return create_agent(Asker(turns=[[called("send_money", "i0", to="ann")]]), tools or [send_money], name="payer")


async def run(payer: Any, to: str) -> str:
    """Let an agent pay."""
    return str((await payer.ainvoke({"messages": [("user", to)]}))["messages"][-1].content)


def in_blocking_thread(to: str) -> str:
    """Pay through a blocking call of an agent, in a thread of its own."""

    async def work() -> str:
        return str(make_payer().invoke({"messages": [("user", to)]})["messages"][-1].content)

    return run_in_thread(work)


def by_hand_in_thread(to: str) -> str:
    """Ask a model and run what it says, without any agent, in a thread of its own."""

    async def work() -> str:
        message = Asker(turns=[[called("send_money", "i0", to=to)]]).invoke(to)
        return str(send_money.invoke(message.tool_calls[0]["args"]))

    return run_in_thread(work)


def by_code(to: str) -> str:
    """Pay as this code says."""
    return str(send_money.invoke({"to": to}))


def make_inbox(runs: Any) -> Any:
    """Return the function that builds a graph, whose node runs the calls that were accepted."""

    def act(state: MessagesState) -> Any:
        request = {"action": "send_money", "args": {"to": "ann"}}
        interrupt([{"action_request": request, "config": {"allow_accept": True}, "description": None}])
        return {"messages": [("ai", str(runs({"name": "send_money", **request, "id": "c0", "type": "tool_call"})))]}

    def build(*, checkpointer: Any, middleware: Any) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("act", act)
        graph.set_entry_point("act")
        return graph.compile(checkpointer=checkpointer)

    return build


def accepted(call: Any) -> Any:
    """Run the accepted call, with its id."""
    return send_money.invoke(call).content


def accepted_twice(call: Any) -> Any:
    """Run the accepted call, then repeat it."""
    return [accepted(call), accepted(call)]


async def main() -> None:
    """Play each variant."""
    with TemporaryDirectory() as folder:

        def make(function: Any) -> FrameworkAgent:
            made = function if function is send_money else tool(function)

            def build(*, checkpointer: Any, middleware: Any) -> Any:
                asker = Asker(turns=[[called(made.name, "c0", to="ann")]])
                return create_agent(asker, [made], middleware=middleware, checkpointer=checkpointer)

            return gate(build, name="bot", tools=[made], checkpointer=sqlite(Path(folder) / f"{made.name}.db"))

        def make_graph(runs: Any) -> FrameworkAgent:
            saver = sqlite(Path(folder) / f"{runs.__name__}.db")
            return gate(make_inbox(runs), name="bot", tools=[send_money], checkpointer=saver)

        inbox = await play_all(make_graph, (accepted, accepted_twice))
        payers = Payers("langgraph", make_payer, run, make, send_money, tool("send_money")(send_gated))
        more = (in_blocking_thread, by_hand_in_thread, by_code)
        results = await play_variants(payers, more, (BaseTool,), (BaseTool, "arun"))
    print_json({**results, "inbox": inbox})


if __name__ == "__main__":
    asyncio.run(main())
