"""OpenAI Agents SDK tools with input guardrails, and agents inside tools."""

import asyncio
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    Usage,
    function_tool,
    tool_input_guardrail,
)
from agents.testing import assistant_message, function_call
from agents.tool_context import ToolContext

from sayso.adapters.openai_agents import gate
from tests.frameworks.edge_cases.local_runs import play, print_json, refusal
from tests.sayso.runners import approve

QUIET = RunConfig(tracing_disabled=True)
RAN: list[str] = []


class Asker(Model):
    """Requests one transfer, then repeats its result."""

    def __init__(self, to: str) -> None:
        self.to = to

    async def get_response(self, system_instructions: Any, input: Any, *_args: Any, **_more: Any) -> ModelResponse:
        results = [] if isinstance(input, str) else [str(one["output"]) for one in input if "output" in one]
        output: Any = (
            assistant_message(results[0]) if results else function_call("send_money", {"to": self.to}, call_id="c0")
        )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


@tool_input_guardrail
def only_known(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Allow transfers to known people."""
    if "mallory" in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.reject_content("Mallory gets nothing.")
    if "eve" in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.raise_exception()
    return ToolGuardrailFunctionOutput.allow()


@function_tool(tool_input_guardrails=[only_known])
def send_money(context: ToolContext[Any], to: str) -> str:
    """Send money to somebody."""
    RAN.append(f"{to}, as {context.tool_arguments}")
    return f"sent to {to}"


@function_tool
async def delegate(task: str) -> str:
    """Have another agent do it."""
    return f"{task}: {PAYER.name}"


PAYER = Agent("payer", model=Asker("ann"), tools=[send_money])
SPEAKER = Agent("speaker", model=Asker("ann"))


async def main() -> None:
    """Play each agent."""

    async def sent(asked: str, decided: str) -> Any:
        bot = gate(Agent("bot", model=Asker(asked), tools=[send_money]), name="bot", run_config=QUIET)
        return await play(bot, lambda ask: approve(ask, to=decided))

    def refused(*tools: Any) -> str | None:
        return refusal(lambda: gate(Agent("bot", model=Asker("ann"), tools=list(tools)), name="bot"))

    print_json(
        {
            "as asked": await sent("ann", "ann"),
            "edited to a refused one": await sent("ann", "mallory"),
            "edited to one that stops the run": await sent("ann", "eve"),
            "edited from a refused one": await sent("mallory", "bob"),
            "ran": RAN,
            "agent as a tool": refused(PAYER.as_tool("ask_payer", "Pays.")),
            "agent in a function": refused(delegate),
            "agent that hands off": refused(Agent("front", handoffs=[PAYER]).as_tool("ask_front", "Asks.")),
            "agent without tools": refused(SPEAKER.as_tool("ask_speaker", "Speaks.")),
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
