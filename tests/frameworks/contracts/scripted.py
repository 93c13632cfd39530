"""AFK models with scripted turns, and tools that record their effects."""

from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from tests.frameworks.contracts import LLMResponse, PolicyDecision, ToolCall, tool


class ScriptedModel:
    """Plays its turns in order, then returns the latest results as text."""

    provider_id = "player"
    capabilities = SimpleNamespace(streaming=False, interrupt=False)

    def __init__(self, *turns: list[ToolCall] | Exception) -> None:
        self.turns = turns
        self.results: list[str] = []

    async def chat(self, request: Any, **_more: Any) -> LLMResponse:
        """Return the number of the turn and its calls."""
        number = sum(one.role == "assistant" for one in request.messages)
        self.results = [str(one.content) for one in request.messages if one.role == "tool"]
        turn = self.turns[number] if number < len(self.turns) else None
        if isinstance(turn, Exception):
            raise turn
        if turn is not None:
            return LLMResponse(text=f"Turn {number}.", tool_calls=turn)
        return LLMResponse(text=" | ".join(self.results))


class MemoryRows:
    """A memory store in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Any] = {}

    async def setup(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def append_event(self, event: Any) -> None:
        """Ignore events: the provider gets them too."""

    async def get_state(self, thread_id: str, key: str) -> Any:
        """Return the value, or None."""
        return self.rows.get((thread_id, key))

    async def put_state(self, thread_id: str, key: str, value: Any) -> None:
        """Save the value."""
        self.rows[thread_id, key] = value

    async def list_state(self, thread_id: str, prefix: str | None = None) -> dict[str, Any]:
        """Return the values whose keys have this prefix."""
        mine = {key: value for (thread, key), value in self.rows.items() if thread == thread_id}
        return {key: value for key, value in mine.items() if key.startswith(prefix or "")}


class PayArgs(BaseModel):
    """The recipient and the amount."""

    to: str
    amount: int


class PayTool:
    """A tool that pays, and the payments it made."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool(args_model=PayArgs, name="pay", description="Pay somebody.")
        async def pay(args: PayArgs) -> str:
            if args.to == "nobody":
                raise ValueError("no account")
            self.paid.append((args.to, args.amount))
            return f"paid {args.amount} to {args.to}"

        self.tool = pay


class Rule:
    """An AFK rule engine with one rule."""

    def __init__(self, event_type: str, decision: PolicyDecision) -> None:
        self._event_type = event_type
        self._decision = decision

    def evaluate(self, event: Any) -> Any:
        """Return the decision for its events, and the default for others."""
        return SimpleNamespace(decision=self._decision if event.event_type == self._event_type else PolicyDecision())


def pay(to: str, amount: Any, call_id: str | None = "c0") -> ToolCall:
    """Return a call of the tool `pay`."""
    return ToolCall(id=call_id, tool_name="pay", arguments={"to": to, "amount": amount})
