"""Protocol of a language model: it answers a transcript with text or with tool calls."""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, Field

from sayso.core.canonical_json import MAX_INTEGER, JsonObject
from sayso.core.records.base import Immutable
from sayso.core.records.tools import ToolDefinition
from sayso.errors import ModelError

ChatMessage = JsonObject
"""A message in the shape of the chat-completions protocol."""


def clean_text(value: Any) -> Any:
    """Replace lone surrogates in text, which can be neither saved nor sent."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


Text = Annotated[str, BeforeValidator(clean_text)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class RequestedCall(Immutable):
    """A call as the model wrote it, any text as arguments. `subagent` is "" for the agent itself, None if unknown."""

    call_id: Text = ""
    name: Text = ""
    args_json: Text = ""
    subagent: str | None = None


class ModelTurn(Immutable):
    """One turn of a model. A turn without calls ends the run."""

    text: Text = ""
    calls: tuple[RequestedCall, ...] = ()
    finish_reason: Text | None = None
    usage: dict[str, Count] = Field(default_factory=dict)


class Model(Protocol):
    """Answers a transcript, stateless between turns. `describe`, if any, returns `model` and `provider` for rules."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn; raises `ModelError` if the model gives none."""


class ScriptedModel:
    """Replay given turns. The transcript alone determines the next one, so it works across processes."""

    def __init__(self, turns: Sequence[ModelTurn]) -> None:
        self._turns = tuple(turns)

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        place = sum(1 for message in messages if message["role"] == "assistant")
        if place >= len(self._turns):
            raise ModelError(f"All {len(self._turns)} turns of the script were replayed. Add another turn.")
        return self._turns[place]
