"""Tools from a function without types and a JSON Schema, which jsonschema-rs (`sayso[server]`) checks."""

import inspect
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import define
from sayso.core.schemas.bounds import weigh, without_argument
from sayso.core.schemas.validators import compile_schema, find_misfits
from sayso.errors import InvalidInput
from sayso.runner.tools import (
    TIMEOUT_S,
    CallContext,
    Function,
    Tool,
    check_label,
    check_preview,
    check_undo,
    describe_error,
)

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class SchemaTool(Tool):
    """A tool whose arguments are described by a JSON Schema alone; its function takes them by name."""

    def find_fault(self, args: JsonObject, *, ignore: str | None = None) -> str | None:
        schema = self.definition.parameters if ignore is None else without_argument(self.definition.parameters, ignore)
        for place, problem in find_misfits(schema, args):
            if place[:1] != [ignore]:
                return f"{'.'.join(map(str, place)) or 'arguments'}: {problem}"
        return None

    def read(self, args: JsonObject) -> BaseModel | None:
        return None  # there is no parsed form of the arguments

    def bind(self, args: JsonObject, context: CallContext, read: BaseModel | None = None) -> dict[str, Any]:
        if fault := self.find_fault(args):
            raise InvalidInput(f"The arguments do not fit: {fault}")
        return {**args, "call": context} if self.takes_call else dict(args)


def tool_from_schema(
    function: Function,
    schema: JsonObject,
    *,
    name: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
    timeout_s: float = TIMEOUT_S,
    preview: Function | None = None,
    undo: Function | None = None,
) -> Tool:
    """Return a tool for arguments that fit a JSON Schema of an object; raises `InvalidInput` if `function` does not."""
    label: str = getattr(function, "__name__", "") if name is None else name
    check_label(label, timeout_s)
    check_preview(label, preview)
    check_undo(label, undo)
    weigh(schema)
    compile_schema(to_json(schema))
    try:
        takes_call = typing.get_type_hints(function).get("call") is CallContext
    except Exception as error:
        raise InvalidInput(f"The types of tool {label} cannot be read: {describe_error(error)}.") from error
    if faults := "; ".join(_find_faults(function, schema, takes_call)):
        raise InvalidInput(f"Tool {label} does not fit its schema: {faults}. Change one of them.")
    summary = (inspect.getdoc(function) or "") if description is None else description
    definition = define(label, summary, schema, idempotent, preview is not None, undo is not None)
    return SchemaTool(
        definition=definition,
        function=function,
        timeout_s=timeout_s,
        preview=preview,
        undo=undo,
        takes_call=takes_call,
    )


def _find_faults(function: Function, schema: JsonObject, takes_call: bool) -> Iterator[str]:
    parameters = dict(inspect.signature(function).parameters)
    if takes_call:
        del parameters["call"]
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    anything = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    by_name = {name: parameter for name, parameter in parameters.items() if parameter.kind in _BY_NAME}
    if takes_call and "call" in known:
        yield "the parameter 'call' takes the context, so no property can have its name"
    if not anything:
        yield from (f"the function has no parameter {name!r}" for name in known if name not in by_name)
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            yield f"the parameter {name!r} cannot be given by name"
        elif name in by_name and parameter.default is parameter.empty and name not in needed:
            yield f"the parameter {name!r} has no default and is not required by the schema"
