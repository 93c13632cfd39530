"""A Google ADK bot."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types

from sayso.adapters.google_adk import gate
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn


class ScriptedModel(BaseLlm):
    """Plays the next turn, counted in the contents."""

    model: str = "player"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts: list[Any] = [part for content in llm_request.contents for part in content.parts or ()]
        turns = parse_script(parts[0].text)
        turn = sum(content.role == "model" for content in llm_request.contents)
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [
                types.FunctionCall(id=f"call_{turn}_{i}", name=c["tool"], args=c["args"])
                for i, c in enumerate(turns[turn])
            ]
            answer = [types.Part(function_call=call) for call in calls]
        else:
            results = [str(part.function_response.response) for part in parts if part.function_response]
            answer = [types.Part(text="results: " + " | ".join(results))]
        yield LlmResponse(content=types.ModelContent(answer))


def send_money(to: str, amount: int) -> str:
    return record_effect("send_money", to=to, amount=amount)


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return record_effect("send_mail", to=to, text=text)


def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


send_money.__doc__ = describe_send_money()
agent = LlmAgent(name="bot", model=ScriptedModel(), tools=[send_money, FunctionTool(send_mail), look_up])
bot = gate(agent, name="bot", idempotent={"look_up"})
