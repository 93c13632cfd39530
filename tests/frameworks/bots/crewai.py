"""A CrewAI bot."""

import json
import os
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from sayso.adapters.crewai import gate
from tests.frameworks.bots.effects import describe_send_money, record_effect, wait_before_turn


class ScriptedModel(BaseLLM):
    """Plays the next turn, counted in the messages."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_args: Any, **_more: Any) -> Any:
        text = next(str(sent["content"]) for sent in messages if '{"turns"' in str(sent["content"]))
        turns: Any = json.JSONDecoder().raw_decode(text[text.index('{"turns"') :])[0]["turns"]
        turn = sum(sent["role"] == "assistant" for sent in messages)
        wait_before_turn(turn)
        if turn < len(turns):
            return [
                {"id": f"call_{turn}_{i}", "function": {"name": c["tool"], "arguments": json.dumps(c["args"])}}
                for i, c in enumerate(turns[turn])
            ]
        return "results: " + " | ".join(str(sent["content"]) for sent in messages if sent["role"] == "tool")


@tool
def send_money(to: str, amount: int) -> str:
    """Send money."""
    return record_effect("send_money", to=to, amount=amount)


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return record_effect("send_mail", to=to, text=text)


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


def build() -> Agent:
    send_money.description = describe_send_money()
    tools = [send_money, send_mail, look_up]
    return Agent(
        role="banker", goal="Play.", backstory="Plays.", tools=tools, llm=ScriptedModel(model="player"), verbose=False
    )


bot = gate(build, name="bot", idempotent={"look_up"})
