"""Agents of AFK whose model plays turns that were written down, and whose tools say what they did."""

from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from tests.frameworks.contracts import LLMResponse, PolicyDecision, ToolCall, tool


class Player:
    """Plays the next turn each time it is asked, then says what it was told last."""

    provider_id = "player"
    capabilities = SimpleNamespace(streaming=False, interrupt=False)

    def __init__(self, *turns: list[ToolCall] | Exception) -> None:
        self.turns = turns
        self.told: list[str] = []

    async def chat(self, request: Any, **_more: Any) -> LLMResponse:
        """Say the turn's number and ask for its calls."""
        said = sum(one.role == "assistant" for one in request.messages)
        self.told = [str(one.content) for one in request.messages if one.role == "tool"]
        turn = self.turns[said] if said < len(self.turns) else None
        if isinstance(turn, Exception):
            raise turn
        if turn is not None:
            return LLMResponse(text=f"Turn {said}.", tool_calls=turn)
        return LLMResponse(text=" | ".join(self.told))


class Rows:
    """A memory store that shows what is in it."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Any] = {}

    async def setup(self) -> None:
        """Be ready."""

    async def close(self) -> None:
        """Be done."""

    async def append_event(self, event: Any) -> None:
        """Keep no events: they come to the provider, too."""

    async def get_state(self, thread_id: str, key: str) -> Any:
        """Return what was put, or None."""
        return self.rows.get((thread_id, key))

    async def put_state(self, thread_id: str, key: str, value: Any) -> None:
        """Keep it."""
        self.rows[thread_id, key] = value

    async def list_state(self, thread_id: str, prefix: str | None = None) -> dict[str, Any]:
        """Return all that was put under keys that begin so."""
        mine = {key: value for (thread, key), value in self.rows.items() if thread == thread_id}
        return {key: value for key, value in mine.items() if key.startswith(prefix or "")}


class Money(BaseModel):
    """Who is paid how much."""

    to: str
    amount: int


class Purse:
    """A tool that pays, and the payments it made."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool(args_model=Money, name="pay", description="Pay somebody.")
        async def pay(args: Money) -> str:
            if args.to == "nobody":
                raise ValueError("no account")
            self.paid.append((args.to, args.amount))
            return f"paid {args.amount} to {args.to}"

        self.tool = pay


class Rule:
    """A rule engine of AFK's own with one rule."""

    def __init__(self, event_type: str, decision: PolicyDecision) -> None:
        self._event_type = event_type
        self._decision = decision

    def evaluate(self, event: Any) -> Any:
        """Decide its events, and let the rest go on."""
        return SimpleNamespace(decision=self._decision if event.event_type == self._event_type else PolicyDecision())


def pay(to: str, amount: Any, call_id: str | None = "c0") -> ToolCall:
    """Return a call that pays."""
    return ToolCall(id=call_id, tool_name="pay", arguments={"to": to, "amount": amount})
