"""A LangChain agent."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from sayso.adapters.langgraph import gate, sqlite
from sayso.core.clock import new_id
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted

USED = {"input_tokens": GIVEN, "output_tokens": MADE, "total_tokens": GIVEN + MADE}


class Speaker(GenericFakeChatModel):
    """Answers at once."""

    messages: Any = ()

    def _generate(self, *_args: Any, **_more: Any) -> ChatResult:
        used: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        message = AIMessage("fetched", usage_metadata=used, response_metadata={"model_name": "speaker-1"})
        return ChatResult(generations=[ChatGeneration(message=message)])


class Player(BaseChatModel):
    """Fetches one thing after another."""

    reports: bool
    tool: str = "fetch"

    @property
    def _llm_type(self) -> str:
        return "player"

    def bind_tools(self, *_args: Any, **_more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_args: Any, **_more: Any) -> ChatResult:
        turn = sum(isinstance(one, AIMessage) for one in messages)
        calls = [{"name": self.tool, "args": {"what": str(turn)}, "id": f"c{turn}"}] if turn < CALLS else []
        about = {"model_name": "player-1"}
        message: Any = AIMessage("done", tool_calls=calls, response_metadata=about)
        message.usage_metadata = USED if self.reports else None
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


@tool
def ask_speaker(what: str) -> str:
    """Have another model fetch it."""
    return str(Speaker().invoke(what).content)


def make_in(folder: str, reports: bool, used: Any = fetch) -> FrameworkAgent:
    """Return an agent whose threads are in a new file."""
    path = Path(folder) / f"{new_id('threads')}.db"

    def build(*, checkpointer: Any, middleware: Any) -> Any:
        return create_agent(
            Player(reports=reports, tool=used.name), [used], middleware=middleware, checkpointer=checkpointer
        )

    return gate(build, name="bot", tools=[used], checkpointer=sqlite(path))


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        print_counted(lambda reports: make_in(home, reports), make_in(home, True, ask_speaker))
