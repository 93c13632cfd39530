"""Say what a language model is to a run: something that answers a transcript with text, or with calls to be made."""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, Field

from sayso.canonical_json import MAX_INTEGER, JsonObject
from sayso.errors import ModelError
from sayso.records.base import Immutable
from sayso.records.tool_calls import ToolDefinition

ChatMessage = JsonObject
"""A message in the shape of the chat-completions protocol."""


def clean_text(value: Any) -> Any:
    """Return text with its broken characters replaced: half a surrogate pair can be neither saved nor sent."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


Text = Annotated[str, BeforeValidator(clean_text)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class RequestedCall(Immutable):
    """A call as the model wrote it; its arguments are text that may be anything.

    `subagent` is the sub-agent whose model wrote it, "" for the agent itself, None where its adapter does not know.
    """

    call_id: Text = ""
    name: Text = ""
    args_json: Text = ""
    subagent: str | None = None


class ModelTurn(Immutable):
    """One answer of a model. An answer without calls is its last."""

    text: Text = ""
    calls: tuple[RequestedCall, ...] = ()
    finish_reason: Text | None = None
    usage: dict[str, Count] = Field(default_factory=dict)


class Model(Protocol):
    """Whatever answers a transcript. It keeps nothing between two answers: a run may go on in another process.

    It may also have a method `describe`, which returns its `model` and `provider` for rules about model calls.
    """

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn; raises `ModelError` when there is none to be had."""
        ...


class ScriptedModel:
    """Replay given turns. The transcript alone says which is next, so it works across processes."""

    def __init__(self, turns: Sequence[ModelTurn]) -> None:
        self._turns = tuple(turns)

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the turn that follows the answers already in the transcript."""
        said = sum(1 for message in messages if message["role"] == "assistant")
        if said >= len(self._turns):
            raise ModelError(f"The script has {len(self._turns)} turns and all of them were replayed; write another.")
        return self._turns[said]
