"""An OpenAI Agents SDK bot."""

from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Usage, function_tool
from agents.testing import assistant_message, function_call

from sayso.adapters.openai_agents import gate
from sayso.timeline import tool_responses
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn


class ScriptedModel(Model):
    """Plays the next turn, counted in the input."""

    async def get_response(self, system_instructions: Any, input: Any, *_args: Any, **_more: Any) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        turns = parse_script(str(items[0]["content"]))
        ids = {one["call_id"] for one in items if one.get("type") == "function_call"}
        turn = len({one.split("_")[1] for one in ids})
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [function_call(c["tool"], c["args"], call_id=f"call_{turn}_{i}") for i, c in enumerate(turns[turn])]
            return ModelResponse(output=calls, usage=Usage(), response_id=None)
        results = [str(one["output"]) for one in items if one.get("type") == "function_call_output"]
        text = "results: " + " | ".join(results)
        return ModelResponse(output=[assistant_message(text)], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


@function_tool(description_override=describe_send_money())
def send_money(to: str, amount: int) -> str:
    return record_effect("send_money", to=to, amount=amount)


@function_tool
def send_mail(to: str, text: str) -> Any:
    """Send a mail, and say so as a chat's client draws it."""
    done = record_effect("send_mail", to=to, text=text)
    response = tool_responses.ToolResponse(
        response_type="send_google_email", agent_name="Bank", friendly_name="Sent", response=done
    )
    return response.to_dict()


@function_tool
def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


agent = Agent("bot", model=ScriptedModel(), tools=[send_money, send_mail, look_up])
bot = gate(
    agent,
    name="bot",
    idempotent={"look_up"},
    run_config=RunConfig(tracing_disabled=True),
    describe_refused=tool_responses.describe_refused("Bank"),
)
