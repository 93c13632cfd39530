"""Types of model requests and responses."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model wants."""

    id: str | None = None
    tool_name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one response."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """One turn of the model."""

    text: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the conversation."""

    role: str
    content: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """What the model is asked."""

    model: str
    messages: list[Message]
