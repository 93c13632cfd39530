"""An AFK bot, with AFK's own runner if it is on the path."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn
from tests.frameworks.contracts import Agent, LLMResponse, Runner, RunnerConfig, SQLiteMemoryStore, ToolCall, tool

ROWS = Path(os.environ["BOT_HOME"]).parent / "afk.db"


class ScriptedModel:
    """Plays the next turn, counted in the messages."""

    provider_id = "player"
    capabilities = SimpleNamespace(streaming=False, interrupt=False)

    async def chat(self, request: Any, **_more: Any) -> LLMResponse:
        """Return the turn with its calls."""
        turns = parse_script(next(str(one.content) for one in request.messages if one.role == "user"))
        turn = sum(one.role == "assistant" for one in request.messages)
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [
                ToolCall(id=f"call_{turn}_{i}", tool_name=c["tool"], arguments=c["args"])
                for i, c in enumerate(turns[turn])
            ]
            return LLMResponse(text=f"Turn {turn}.", tool_calls=calls)
        results = " | ".join(str(one.content) for one in request.messages if one.role == "tool")
        return LLMResponse(text=f"results: {results}")


class PayArgs(BaseModel):
    to: str
    amount: int


class Mail(BaseModel):
    to: str
    text: str


class Topic(BaseModel):
    what: str


@tool(args_model=PayArgs, description=describe_send_money())
def send_money(args: PayArgs) -> str:
    """Send money to somebody."""
    return record_effect("send_money", **args.model_dump())


@tool(args_model=Mail)
def send_mail(args: Mail) -> str:
    """Send a mail."""
    return record_effect("send_mail", **args.model_dump())


@tool(args_model=Topic)
def look_up(args: Topic) -> str:
    """Look something up."""
    return record_effect("look_up", **args.model_dump())


def build(hooks: Hooks) -> tuple[Any, Any]:
    """Return the runner and the agent."""
    tools = hooks.gate([send_money, send_mail, look_up])
    agent = Agent(name="bot", model=ScriptedModel(), instructions="Play.", tools=tools, policy_roles=[hooks.role])
    config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
    return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent


bot = gate(build, name="bot", memory=lambda: SQLiteMemoryStore(str(ROWS)), idempotent={"look_up"})
