"""An OpenAI Agents SDK agent that calls a tool, and one that hands off to a subagent that does."""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool
from agents.testing import function_call

from sayso.adapters.openai_agents import gate
from tests.frameworks.edge_cases.local_runs import find_callers, print_json


class Asker(Model):
    """Requests one call."""

    def __init__(self, tool: str, args: dict[str, Any]) -> None:
        self._call = function_call(tool, args, call_id=f"call of {tool}")

    async def get_response(self, *_args: Any, **_more: Any) -> ModelResponse:
        return ModelResponse(output=[self._call], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


@function_tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


async def main() -> None:
    """Start both."""
    quiet = RunConfig(tracing_disabled=True)
    fetcher = Asker("fetch", {"what": "a"})
    writer = Agent("writer", model=fetcher, tools=[fetch])
    boss = Agent("boss", model=Asker("transfer_to_writer", {}), tools=[fetch], handoffs=[writer])
    alone = gate(Agent("alone", model=fetcher, tools=[fetch]), name="alone", run_config=quiet)
    handed = gate(boss, name="handed", run_config=quiet)
    print_json({"alone": await find_callers(alone), "handed": await find_callers(handed)})


if __name__ == "__main__":
    asyncio.run(main())
