"""Read what a desk in a test is asked, and write its answers, as the API of a real one does."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.external import ExternalCall
from sayso.problems import Problem, problem_type_of
from sayso.records.base import Immutable
from sayso.records.items import ItemDraft
from sayso.records.suspensions import RunRef, SuspensionRecord
from sayso.records.tool_calls import ToolCall, ToolDefinition
from sayso.records.tool_names import check_tool_name
from sayso.schemas.bounds import without_argument
from sayso.transitions.item_states import find_item_state

_MOMENT = re.compile(r"(.*\b|.*_)?(at|by)_ms")
_KINDS: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


class AskedDefinition(Immutable):
    """What a tool is."""

    description: str = ""
    parameters: JsonObject = Field(default={"type": "object"})
    idempotent: bool = False


class AskedCall(Immutable):
    """One call that is to be judged."""

    tool: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)
    definition: AskedDefinition
    call_id: str = ""


class AskedBody(Immutable):
    """Calls that are to be judged together, of a run that whoever asks drives."""

    mode: Literal["poll"]
    calls: tuple[AskedCall, ...] = Field(min_length=1)
    title: str = ""
    thread_id: str | None = None
    context: JsonObject = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    coverage: Literal["all", "any"] = "all"
    on_deny: Literal["continue", "degrade", "fail"] = "continue"
    step: int | None = Field(default=None, strict=True, ge=1, le=1_000_000)


def read_call(index: int, asked: AskedCall) -> ExternalCall:
    """Return the call with its tool's definition."""
    definition = ToolDefinition(
        name=check_tool_name(asked.tool),
        description=asked.definition.description,
        parameters=asked.definition.parameters,
        idempotent=asked.definition.idempotent,
    )
    return ExternalCall(ToolCall(call_id=asked.call_id, index=index, name=asked.tool, args=asked.args), definition)


def check_asked(call: ExternalCall, ask: ItemDraft) -> None:
    """Raise `InvalidInput` for arguments that do not fit their tool, but for one that a person is to give."""
    schema, target = call.definition.parameters, ask.target_arg
    opened = schema if target is None else without_argument(schema, target)
    check_outline(opened, call.call.args, f"calls[{call.call.index}].args")


def check_outline(schema: JsonObject, value: JsonValue, name: str) -> None:
    """Raise `InvalidInput` where a value is of another type, or has other keys, than its schema says.

    It needs no library that agents lack; a real desk checks all that the schema says.
    """
    kinds: Any = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(kind, value) for kind in kinds):
        raise InvalidInput(f"That does not fit: {name}: {value!r} is not of type {', '.join(kinds)}. Correct it.")
    properties = schema.get("properties", {})
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return
    missing = [key for key in _listed(schema.get("required")) if key not in value]
    unknown = [key for key in value if key not in properties] if schema.get("additionalProperties") is False else []
    if missing or unknown:
        words = [f"{key!r} is missing" for key in missing] + [f"there is no {key!r}" for key in unknown]
        raise InvalidInput(f"That does not fit: {name}: {'; '.join(words)}. Correct it.")
    for key, inner in properties.items():
        if key in value and isinstance(inner, dict):
            check_outline(inner, value[key], f"{name}.{key}")


def describe_misfit(error: ValidationError) -> InvalidInput:
    """Return the first fault of a request as an error that names its place."""
    fault = error.errors(include_url=False)[0]
    return InvalidInput(f"This does not fit: {'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}.")


def show_record(record: SuspensionRecord) -> JsonValue:
    """Return a record as the API shows it: moments in RFC 3339 under their names without `_ms`."""
    shown: dict[str, Any] = show_part(record.model_dump(mode="json", exclude={"run"}))
    shown["run"] = show_run(record.run)
    for part, item in zip(shown["items"], record.items, strict=True):
        part["state"] = find_item_state(record, item)
    return {**shown, "deadline_at": iso_utc(record.deadline_at_ms) if record.deadline_at_ms else None}


def show_run(run: RunRef) -> JsonObject:
    """Return a run as the API shows it: what its agent says of it under names of its own."""
    shown: JsonObject = show_dates(run.model_dump(mode="json", exclude={"title", "facts", "claimed"}))
    return {**shown, "claimed_title": run.title, "context": run.facts, "claimed_context": run.claimed}


def show_part(part: Any) -> Any:
    """Return a part of a record as the API shows it."""
    if isinstance(part, list):
        return [show_part(one) for one in part]
    if not isinstance(part, dict):
        return part
    whole = {"args", "value", "result", "output", "context", "response_schema", "choices"}
    return show_dates({name: value if name in whole else show_part(value) for name, value in part.items()})


def show_dates(part: JsonObject) -> JsonObject:
    """Return an object with its own moments in RFC 3339."""
    return {
        name.removesuffix("_ms") if _MOMENT.fullmatch(name) else name: iso_utc(value)
        if _MOMENT.fullmatch(name) and isinstance(value, int)
        else value
        for name, value in part.items()
    }


def describe_problem(error: SaysoError) -> Problem:
    """Return the problem that answers an error."""
    row = problem_type_of(type(error))
    facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float | bool)}
    return Problem(row.status, row.slug, row.title, error.message, facts)


def _is_of(kind: Any, value: JsonValue) -> bool:
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
