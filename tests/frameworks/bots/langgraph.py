"""A LangChain bot, in both interrupt modes."""

import os
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from sayso.adapters.langgraph import gate, sqlite
from sayso.adapters.langgraph.middleware import Mode
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.bots.effects import describe_send_money, parse_script, record_effect, wait_before_turn

THREADS = Path(os.environ["BOT_HOME"]).parent / "threads.db"


class ScriptedModel(BaseChatModel):
    """Plays the next turn, counted in the messages."""

    @property
    def _llm_type(self) -> str:
        return "player"

    def bind_tools(self, *_args: Any, **_more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_args: Any, **_more: Any) -> ChatResult:
        turns = parse_script(str(messages[0].content))
        turn = sum(isinstance(one, AIMessage) for one in messages)
        wait_before_turn(turn)
        if turn < len(turns):
            calls = [
                {"name": c["tool"], "args": c["args"], "id": f"call_{turn}_{i}"} for i, c in enumerate(turns[turn])
            ]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])
        results = " | ".join(str(one.content) for one in messages if isinstance(one, ToolMessage))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"results: {results}"))])


@tool(description=describe_send_money())
def send_money(to: str, amount: int) -> str:
    return record_effect("send_money", to=to, amount=amount)


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return record_effect("send_mail", to=to, text=text)


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return record_effect("look_up", what=what)


TOOLS = [send_money, send_mail, look_up]


def build(*, checkpointer: Any, middleware: Any) -> Any:
    return create_agent(ScriptedModel(), TOOLS, middleware=middleware, checkpointer=checkpointer)


def make(mode: Mode) -> FrameworkAgent:
    return gate(
        build,
        name="bot",
        tools=TOOLS,
        checkpointer=sqlite(THREADS),
        interrupt_mode=mode,
        idempotent={"look_up"},
    )
