"""An Agent Framework bot."""

from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from sayso.adapters.agent_framework import gate
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn


class ScriptedModel(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Plays the next turn, counted in the input."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_more: Any) -> Any:
        contents = [content for message in messages for content in message.contents]
        turns = parse_script(messages[0].text)
        turn = len({part.call_id.split("_")[1] for part in contents if part.type == "function_call"})
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [
                Content.from_function_call(f"call_{turn}_{i}", c["tool"], arguments=c["args"])
                for i, c in enumerate(turns[turn])
            ]
            return ChatResponse(messages=[Message("assistant", calls)])
        results = [str(part.result) for part in contents if part.type == "function_result"]
        return ChatResponse(messages=[Message("assistant", ["results: " + " | ".join(results)])])


@tool(description=describe_send_money())
def send_money(to: str, amount: int) -> str:
    """Send money to somebody."""
    return record_effect("send_money", to=to, amount=amount)


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return record_effect("send_mail", to=to, text=text)


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


agent = Agent(client=ScriptedModel(), tools=[send_money, send_mail, look_up])
bot = gate(agent, name="bot", idempotent={"look_up"})
