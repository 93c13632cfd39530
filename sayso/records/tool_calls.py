"""Frozen models for tool definitions, calls and results."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from sayso.canonical_json import JsonObject, digest_json, parse_json
from sayso.errors import InvalidInput
from sayso.records.base import Immutable
from sayso.records.tool_names import check_tool_name
from sayso.text.redaction import has_secrets, list_secret_paths


class ToolDefinition(Immutable):
    """A tool as its agent declares it. Every approval is bound to its digest, so a redefined tool is noticed."""

    name: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=20_000)
    parameters: dict[str, JsonValue] = Field(default={"type": "object", "properties": {}})
    idempotent: bool = False

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical definition."""
        return self.traits.digest

    @property
    def traits(self) -> "ToolTraits":
        """What follows from the definition alone; computed once for equal definitions."""
        return _find_traits(self.model_dump_json())

    @property
    def properties(self) -> Mapping[str, JsonValue]:
        """The schemas of the arguments; none when the parameters list none."""
        properties = self.parameters.get("properties")
        return properties if isinstance(properties, dict) else {}


class ToolTraits(NamedTuple):
    """The digest of a tool's definition, and the paths of its secret arguments.

    Without `has_secrets`, the definition names no secret anywhere.
    """

    digest: str
    secrets: tuple[str, ...]
    has_secrets: bool


@lru_cache(maxsize=4096)
def _find_traits(definition: str) -> ToolTraits:
    parsed = parse_json(definition)
    parameters = parsed.get("parameters") if isinstance(parsed, dict) else None
    schema = parameters if isinstance(parameters, dict) else {}
    return ToolTraits(digest_json(parsed), list_secret_paths(schema), has_secrets(schema))


def define(name: str, description: str, parameters: JsonObject, idempotent: bool) -> ToolDefinition:
    """Return a tool definition; raises `InvalidInput` when a part is invalid."""
    check_tool_name(name)
    try:
        return ToolDefinition(name=name, description=description, parameters=parameters, idempotent=idempotent)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise InvalidInput(f"The definition of tool {name[:80]!r} is invalid: {faults}.") from error


class ToolCall(Immutable):
    """One call of a model turn. The id comes from the model and may be empty or repeated; the index is unique.

    `subagent` is the sub-agent that makes the call, "" for the agent itself, and None when unknown.
    """

    call_id: str = Field(max_length=200)
    index: int = Field(ge=0)
    name: str = Field(min_length=1, max_length=200)
    args: dict[str, Any]
    subagent: str | None = None


class ToolResult(Immutable):
    """How one call ended. `latency_ms` is None for a call that never ran."""

    call_id: str
    tool_name: str
    success: bool
    output: JsonValue = None
    error: str | None = None
    latency_ms: float | None = None

    @property
    def tool_message(self) -> dict[str, JsonValue]:
        """The result as the model receives it, in the shape of the tool-call lifecycle (seed 003)."""
        if self.success:
            return {"success": True, "output": self.output, "tool_call_id": self.call_id}
        return {"success": False, "error": self.error, "tool_call_id": self.call_id}
