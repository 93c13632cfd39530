"""An AFK bot, with AFK's own runner if it is on the path."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from tests.frameworks.bots.effects import leave, parse_script, think, words
from tests.frameworks.contracts import Agent, LLMResponse, Runner, RunnerConfig, SQLiteMemoryStore, ToolCall, tool

ROWS = Path(os.environ["BOT_HOME"]).parent / "afk.db"


class Player:
    """Plays the next turn, counted in the messages."""

    provider_id = "player"
    capabilities = SimpleNamespace(streaming=False, interrupt=False)

    async def chat(self, request: Any, **_more: Any) -> LLMResponse:
        """Return the turn with its calls."""
        turns = parse_script(next(str(one.content) for one in request.messages if one.role == "user"))
        said = sum(one.role == "assistant" for one in request.messages)
        think(said)
        if said < len(turns):
            calls = [
                ToolCall(id=f"call_{said}_{i}", tool_name=c["tool"], arguments=c["args"])
                for i, c in enumerate(turns[said])
            ]
            return LLMResponse(text=f"Turn {said}.", tool_calls=calls)
        told = " | ".join(str(one.content) for one in request.messages if one.role == "tool")
        return LLMResponse(text=f"told: {told}")


class Money(BaseModel):
    to: str
    amount: int


class Mail(BaseModel):
    to: str
    text: str


class Topic(BaseModel):
    what: str


@tool(args_model=Money, description=words())
def send_money(args: Money) -> str:
    """Send money to somebody."""
    return leave("send_money", **args.model_dump())


@tool(args_model=Mail)
def send_mail(args: Mail) -> str:
    """Send a mail."""
    return leave("send_mail", **args.model_dump())


@tool(args_model=Topic)
def look_up(args: Topic) -> str:
    """Look something up."""
    return leave("look_up", **args.model_dump())


def build(hooks: Hooks) -> tuple[Any, Any]:
    """Return the runner and the agent."""
    tools = hooks.gate([send_money, send_mail, look_up])
    agent = Agent(name="bot", model=Player(), instructions="Play.", tools=tools, policy_roles=[hooks.role])
    config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
    return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent


bot = gate(build, name="bot", memory=lambda: SQLiteMemoryStore(str(ROWS)), idempotent={"look_up"})
