"""Describe what an agent wants to do: the call, and the definition of the tool it calls."""

from functools import lru_cache
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from sayso.canonical_json import JsonObject, digest_json, parse_json
from sayso.errors import InvalidInput
from sayso.records.base import Immutable
from sayso.records.tool_names import check_tool_name


class ToolDefinition(Immutable):
    """A tool as its agent declares it. Its digest is bound into every approval, so that a redefined tool is noticed."""

    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=20_000)
    parameters: dict[str, JsonValue] = Field(default={"type": "object", "properties": {}})
    idempotent: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical definition."""
        return _digest_definition(self.model_dump_json())


@lru_cache(maxsize=4096)
def _digest_definition(definition: str) -> str:
    """A tool is looked at several times in each of its calls, and is the same for as long as its agent runs."""
    return digest_json(parse_json(definition))


def define(name: str, description: str, parameters: JsonObject, idempotent: bool) -> ToolDefinition:
    """Return the definition of a tool that somebody wrote down; raises `InvalidInput` for what does not fit."""
    check_tool_name(name)
    try:
        return ToolDefinition(name=name, description=description, parameters=parameters, idempotent=idempotent)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise InvalidInput(f"Tool {name[:80]!r} cannot be defined so: {faults}.") from error


class ToolCall(Immutable):
    """One call of one model turn. The id is the model's own and may be empty or repeated; the index never is.

    `subagent` is the sub-agent that makes the call, "" where the agent makes it itself, None where nobody knows.
    """

    call_id: str = Field(max_length=200)
    index: int = Field(ge=0)
    name: str = Field(min_length=1, max_length=200)
    args: dict[str, Any]
    subagent: str | None = None


class ToolResult(Immutable):
    """How one call ended: run, failed, denied, timed out or skipped. Latency is None for a call that never ran."""

    call_id: str
    tool_name: str
    success: bool
    output: JsonValue = None
    error: str | None = None
    latency_ms: float | None = None

    @property
    def tool_message(self) -> dict[str, JsonValue]:
        """What the model is told, in the shape of the tool-call lifecycle (seed 003)."""
        if self.success:
            return {"success": True, "output": self.output, "tool_call_id": self.call_id}
        return {"success": False, "error": self.error, "tool_call_id": self.call_id}
