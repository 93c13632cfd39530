"""An AFK agent, with AFK's own runner if it is on the path."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from sayso.core.clock import new_id
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.contracts import (
    Agent,
    LLMResponse,
    Runner,
    RunnerConfig,
    SQLiteMemoryStore,
    ToolCall,
    Usage,
    tool,
)
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


class Player:
    """Fetches one thing after another."""

    provider_id = "player"
    capabilities = SimpleNamespace(streaming=False, interrupt=False)

    def __init__(self, reports: bool) -> None:
        self._usage = Usage(GIVEN, MADE) if reports else Usage()

    async def chat(self, request: Any, **_more: Any) -> LLMResponse:
        """Return the turn with its call."""
        turn = sum(one.role == "assistant" for one in request.messages)
        calls = [ToolCall(id=f"c{turn}", tool_name="fetch", arguments={"what": str(turn)})] if turn < CALLS else []
        return LLMResponse(text=f"Turn {turn}.", tool_calls=calls, usage=self._usage)


class Topic(BaseModel):
    what: str


@tool(args_model=Topic)
def fetch(args: Topic) -> str:
    """Fetch something."""
    return f"fetched {args.what}"


def make_in(folder: str, reports: bool) -> FrameworkAgent:
    """Return an agent whose store is a new file."""
    rows = Path(folder) / f"{new_id('rows')}.db"

    def build(hooks: Hooks) -> tuple[Any, Any]:
        agent = Agent(
            name="bot",
            model=Player(reports),
            instructions="Play.",
            tools=hooks.gate([fetch]),
            policy_roles=[hooks.role],
        )
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent

    return gate(build, name="bot", memory=lambda: SQLiteMemoryStore(str(rows)))


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        print_counted(lambda reports: make_in(home, reports))
