"""OpenAI Agents SDK agents with many turns, and with an agent as a tool."""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool
from agents.testing import assistant_message, function_call

from sayso.adapters.openai_agents import gate
from tests.frameworks.edge_cases.local_runs import LONG_ID, play, print_json, refusal

QUIET = RunConfig(tracing_disabled=True)
TURNS = 12


class Asker(Model):
    """Requests one call after another, then returns their number."""

    async def get_response(self, system_instructions: Any, input: Any, *_args: Any, **_more: Any) -> ModelResponse:
        turn = sum(one.get("type") == "function_call" for one in input if isinstance(one, dict))
        item = function_call("fetch", {"what": str(turn)}, call_id=f"{LONG_ID}{turn}")
        output: Any = item if turn < TURNS else assistant_message(f"{turn} turns")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


@function_tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


@function_tool(needs_approval=True)
def burn(what: str) -> str:
    """Burn something."""
    return f"burnt {what}"


async def main() -> None:
    """Play each agent."""
    agent = Agent("bot", model=Asker(), tools=[fetch])
    inner = Agent("burner", model=Asker(), tools=[burn]).as_tool("ask_burner", "Burns.")
    print_json(
        {
            "long": await play(gate(agent, name="bot", run_config=QUIET, max_turns=TURNS + 1)),
            "inner": refusal(lambda: gate(Agent("bot", model=Asker(), tools=[inner]), name="bot")),
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
