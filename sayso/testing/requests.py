"""Request bodies and response bodies of a desk in memory, as in the API of a real desk."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.external import ExternalCall
from sayso.core.problems import Problem, problem_type_of
from sayso.core.records.base import Immutable
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition, check_tool_name
from sayso.core.schemas.bounds import without_argument
from sayso.core.transitions.closing import mask_end
from sayso.core.transitions.states import RunState
from sayso.errors import InvalidInput, SaysoError
from sayso.wire.suspensions import RunView, show_suspension

_KINDS: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


class DefinitionBody(Immutable):
    """A tool's definition."""

    description: str = ""
    parameters: JsonObject = Field(default={"type": "object"})
    idempotent: bool = False


class CallBody(Immutable):
    """One call to judge."""

    tool: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)
    definition: DefinitionBody
    call_id: str = ""
    revises: str = ""


class SuspendBody(Immutable):
    """Calls to judge together. Their client runs them."""

    mode: Literal["poll"]
    calls: tuple[CallBody, ...] = Field(min_length=1)
    title: str = ""
    thread_id: str | None = None
    context: JsonObject = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    coverage: Literal["all", "any"] = "all"
    on_deny: Literal["continue", "degrade", "fail"] = "continue"
    step: int | None = Field(default=None, strict=True, ge=1, le=1_000_000)
    again: bool = Field(default=False, strict=True)


def draft_suspension(id_: str, run: RunRef, **fields: Any) -> SuspensionRecord:
    """Return a suspension that has not begun."""
    return SuspensionRecord(
        id=id_, tenant="default", status=Status.PENDING, created_at_ms=0, updated_at_ms=0, run=run, **fields
    )


def read_call(index: int, body: CallBody) -> ExternalCall:
    """Return the call with its tool's definition."""
    definition = ToolDefinition(name=check_tool_name(body.tool), **dict(body.definition))
    call = ToolCall(call_id=body.call_id, index=index, name=body.tool, args=body.args)
    return ExternalCall(call, definition, revises=body.revises)


def check_args(call: ExternalCall, draft: ItemDraft) -> None:
    """Raise `InvalidInput` for arguments that do not fit the tool, except the one that the reviewer gives."""
    schema, target = call.definition.parameters, draft.target_arg
    expected = schema if target is None else without_argument(schema, target)
    check_outline(expected, call.call.args, f"calls[{call.call.index}].args")


def check_outline(schema: JsonObject, value: JsonValue, name: str) -> None:
    """Raise `InvalidInput` for a value of the wrong type or with wrong keys. A real desk checks the whole schema."""
    kinds: Any = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(kind, value) for kind in kinds):
        raise InvalidInput(f"{name} does not fit the schema: {value!r} is not of type {', '.join(kinds)}. Correct it.")
    properties = schema.get("properties", {})
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return
    required = schema.get("required")
    missing = [str(key) for key in required if key not in value] if isinstance(required, list) else []
    unknown = [key for key in value if key not in properties] if schema.get("additionalProperties") is False else []
    if missing or unknown:
        faults = [f"{key!r} is missing" for key in missing] + [f"{key!r} is unknown" for key in unknown]
        raise InvalidInput(f"{name} does not fit the schema: {'; '.join(faults)}. Correct it.")
    for key, inner in properties.items():
        if key in value and isinstance(inner, dict):
            check_outline(inner, value[key], f"{name}.{key}")


def describe_misfit(error: ValidationError) -> InvalidInput:
    """Return the first validation error of a request as `InvalidInput`, with its location."""
    fault = error.errors(include_url=False)[0]
    return InvalidInput(f"This does not fit: {'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}.")


def show_record(record: SuspensionRecord) -> JsonValue:
    """Return a record as the API does for the agent."""
    shown: JsonValue = show_suspension(record, (), record.run.owner).model_dump(mode="json")
    return shown


def show_run(record: SuspensionRecord) -> JsonObject:
    """Return the run of its latest record as the API does."""
    end = mask_end(record)
    run = RunView.model_validate(
        {
            **record.run.model_dump(include={"id", "agent", "owner", "thread_id", "title", "tags"}),
            "status": record.run_status,
            "state": RunState(record.run_status),
            "suspension_id": record.id,
            "created_at_ms": record.run.started_at_ms,
            "updated_at_ms": record.updated_at_ms,
            "result": end.result if end else None,
            "error": end.error if end else None,
        }
    )
    return run.model_dump(mode="json")


def describe_problem(error: SaysoError) -> Problem:
    """Return the problem document of an error."""
    row = problem_type_of(type(error))
    facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float | bool)}
    return Problem(row.status, row.slug, row.title, error.message, facts)


def _is_of(kind: Any, value: JsonValue) -> bool:
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))
