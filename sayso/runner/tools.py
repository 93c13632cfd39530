"""Tools from typed Python functions: the signature becomes the schema, the docstring the description."""

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, overload

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python

from sayso.core.canonical_json import JsonObject, canonical_json, check_json
from sayso.core.clock import monotonic_ms
from sayso.core.records.tools import ToolCall, ToolDefinition, ToolResult, define
from sayso.errors import InvalidInput, InvalidJson, SaysoError, TooLarge
from sayso.guarding.runs import use_gated_call
from sayso.runner.models import clean_text

TIMEOUT_S = 300.0
"""Default time limit of a tool, in seconds."""

MAX_ERROR_CHARS = 2000
_LISTED_FAULTS = 5
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_NOT_BY_NAME = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Function = Callable[..., Any]
ReportOutput = Callable[[JsonValue], None]


@dataclass(frozen=True)
class CallContext:
    """Context of the call that a tool serves: declare a parameter `call: CallContext` to receive it.

    Pass the idempotency key on. With an attempt above 1, an earlier attempt may already have had its effect.
    """

    run_id: str
    call_id: str
    idempotency_key: str
    attempt: int = 1


@dataclass(frozen=True)
class Tool:
    """A function that a model may call, with the definition that the model gets."""

    definition: ToolDefinition
    function: Function
    timeout_s: float = TIMEOUT_S
    preview: Function | None = None
    undo: Function | None = None
    takes_call: bool = False
    places: Mapping[str, str] = field(default_factory=dict, repr=False)
    arguments: type[BaseModel] = field(default=BaseModel, repr=False)

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def digest(self) -> str:
        return self.definition.digest

    @property
    def idempotent(self) -> bool:
        return self.definition.idempotent

    def find_fault(self, args: JsonObject, *, ignore: str | None = None) -> str | None:
        """Return the fault in these arguments, or None; `ignore` names one that is not known yet."""
        try:
            self._parse(args)
        except ValidationError as error:
            return _list_faults(error, ignore)
        except Exception as error:  # noqa: BLE001 - a fault in a type's own validator is a fault of the arguments
            return describe_error(error)
        return None

    def read(self, args: JsonObject) -> BaseModel | None:
        """Parse the arguments, or return None if they do not fit; `find_fault` gives the reason."""
        with suppress(Exception):  # a fault in a type's own validator is a fault of the arguments
            return self._parse(args)
        return None

    async def run(
        self,
        args: JsonObject,
        context: CallContext,
        starting: Callable[[], None] = lambda: None,
        ending: Callable[[JsonValue], None] = lambda _output: None,
        read: BaseModel | None = None,
    ) -> JsonValue:
        """Run the function with exactly these arguments and return its result as plain JSON.

        `starting` and `ending` are called right before and after the function, in its thread. Raises `InvalidInput` for
        arguments that do not fit, `InvalidJson` for a result that is not JSON, and any error of the function.
        """
        given = self.bind(args, context, read)

        def begin() -> Any:
            starting()
            return self.function(**given)

        def end(returned: Any) -> JsonValue:
            output = plain_json(returned)
            ending(output)
            return output

        def run_through() -> Any:
            returned = begin()
            return returned if inspect.isawaitable(returned) else end(returned)

        if inspect.iscoroutinefunction(self.function):
            return end(await begin())
        import asyncio  # decorating a function does not need it

        returned = await asyncio.to_thread(run_through)
        return end(await returned) if inspect.isawaitable(returned) else returned

    def bind(self, args: JsonObject, context: CallContext, read: BaseModel | None = None) -> dict[str, Any]:
        try:
            parsed = read if read is not None else self._parse(args)
        except ValidationError as error:
            raise InvalidInput(f"The arguments do not fit: {_list_faults(error, None)}") from error
        given = {name: getattr(parsed, place) for place, name in self.places.items()}
        return {**given, "call": context} if self.takes_call else given

    def _parse(self, args: JsonObject) -> BaseModel:
        # strict: the tool runs with exactly what a reviewer saw
        return self.arguments.model_validate_json(canonical_json(args), strict=True)


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    idempotent: bool = False,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float = TIMEOUT_S,
    preview: Function | None = None,
    undo: Function | None = None,
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    idempotent: bool = False,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float = TIMEOUT_S,
    preview: Function | None = None,
    undo: Function | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool, by `@tool` or `@tool(name="bank.send")`. Raises `InvalidInput` for a parameter without JSON type.

    `preview(args)` returns what a call with these arguments would do, and changes nothing: a text, such as a diff, a
    list of rows, or an object. Reviewers see it first, and the call runs only while it stays the same.

    `undo(arguments, result)` takes the effect of a call back: a rule may then allow such calls with a `veto`.
    """

    def decorate(function: Function) -> Tool:
        label: str = getattr(function, "__name__", "") if name is None else name
        check_label(label, timeout_s)
        check_preview(label, preview)
        check_undo(label, undo)
        parameters, takes_call = _read_signature(function, label)
        arguments, schema = _model_arguments(label, parameters)
        summary = (inspect.getdoc(function) or "") if description is None else description
        return Tool(
            definition=define(label, summary, schema, idempotent, preview is not None, undo is not None),
            function=function,
            timeout_s=timeout_s,
            preview=preview,
            undo=undo,
            takes_call=takes_call,
            places={f"p{index}": parameter for index, parameter in enumerate(parameters)},
            arguments=arguments,
        )

    return decorate if function is None else decorate(function)


async def call_tool(
    tool: Tool,
    call: ToolCall,
    context: CallContext,
    starting: Callable[[], None] = lambda: None,
    ending: Callable[[ToolResult], None] = lambda _result: None,
    read: BaseModel | None = None,
) -> ToolResult:
    """Run one call and return its result, a failed one for an error; `ending` gets each, also after the time limit."""

    async def run(report: ReportOutput) -> None:
        def end(output: JsonValue) -> None:
            running.check()
            report(output)

        with use_gated_call(call.name) as running:
            await tool.run(call.args, context, starting, end, read)

    return await catch_result(call, run, ending, tool.timeout_s)


async def catch_result(
    call: ToolCall,
    run: Callable[[ReportOutput], Awaitable[None]],
    ending: Callable[[ToolResult], None] = lambda _result: None,
    timeout_s: float | None = None,
) -> ToolResult:
    """Await `run`, which reports the output of a call; return the result, a failed one if it raises."""
    import asyncio

    began_ms = monotonic_ms()
    ended: list[ToolResult] = []

    def end(output: JsonValue, error: str | None = None) -> None:
        latency_ms = round(monotonic_ms() - began_ms, 3)
        named = {"call_id": call.call_id, "tool_name": call.name}
        ended.append(ToolResult(**named, success=error is None, output=output, error=error, latency_ms=latency_ms))
        ending(ended[-1])

    error = "The tool did not end."
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            await run(end)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        error = "The tool was cancelled from inside."
    except TimeoutError as raised:
        late = f"{call.name} took longer than {timeout_s:g} s; it may still have had its effect."
        error = late if limit.expired() else describe_error(raised)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the model gets the error; the run goes on
        error = describe_error(raised)
    if not ended:
        end(None, error)
    return ended[0]


def describe_error(error: BaseException) -> str:
    """Return an error as one short text: the message of our own, any other with the name of its type."""
    text = error.message if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}"
    return str(clean_text(text[:MAX_ERROR_CHARS]))


class _PlainSchema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def check_label(label: str, timeout_s: float) -> None:
    """Raise `InvalidInput` for a bad name of a tool or a time limit that is not positive."""
    if not _NAME.fullmatch(label):
        raise InvalidInput(
            f"{label!r} cannot be a tool's name. Give one of at most 128 letters, digits, dots, dashes and underscores "
            f"that begins with a letter, as name=…."
        )
    if not timeout_s > 0:
        raise InvalidInput(f"Tool {label} has a timeout of {timeout_s:g} s. Give it more than 0.")


def check_preview(label: str, preview: Function | None) -> None:
    """Raise `InvalidInput` for a preview that cannot be called with the arguments alone."""
    try:
        if preview is not None:
            inspect.signature(preview).bind({})
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"The preview of tool {label} cannot be called as preview(args). Give it one parameter: the arguments."
        ) from error


def check_undo(label: str, undo: Function | None) -> None:
    """Raise `InvalidInput` for an undo that cannot be called with the arguments and the result."""
    try:
        if undo is not None:
            inspect.signature(undo).bind({}, None)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"The undo of tool {label} cannot be called as undo(arguments, result). Give it these two parameters."
        ) from error


def _read_signature(function: Function, label: str) -> tuple[dict[str, tuple[Any, Any]], bool]:
    if not inspect.isroutine(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(f"Tool {label} is not a plain function. Decorate a def or an async def that returns.")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise InvalidInput(f"The types of tool {label} cannot be read: {describe_error(error)}.") from error
    fields: dict[str, tuple[Any, Any]] = {}
    takes_call = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _NOT_BY_NAME:
            raise InvalidInput(
                f"The parameter {str(parameter).partition(':')[0]!r} of tool {label} cannot be given by name, and "
                "models give arguments by name only. Write out each parameter."
            )
        if parameter.name == "self" and parameter.name not in hints:
            raise InvalidInput(
                f"{label} is a method without an object, which JSON cannot carry. Decorate the method of one object, "
                f"tool(thing.{label}), or write a function."
            )
        if parameter.name not in hints:
            raise InvalidInput(f"The parameter {parameter.name!r} of tool {label} has no type. Annotate it.")
        if hints[parameter.name] is CallContext and parameter.name != "call":
            raise InvalidInput(f"The parameter {parameter.name!r} of tool {label} takes the context; name it 'call'.")
        if hints[parameter.name] is CallContext:
            takes_call = True
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hints[parameter.name], default)
    return fields, takes_call


def _model_arguments(label: str, parameters: Mapping[str, tuple[Any, Any]]) -> tuple[type[BaseModel], JsonObject]:
    fields: dict[str, Any] = {  # pydantic reserves some names that parameters may have
        f"p{index}": (Annotated[type_, Field(alias=name)], default)
        for index, (name, (type_, default)) in enumerate(parameters.items())
    }
    try:
        arguments = create_model(label, __config__=ConfigDict(extra="forbid"), **fields)
        schema = arguments.model_json_schema(schema_generator=_PlainSchema)
    except PydanticUserError as error:
        raise InvalidInput(
            f"Tool {label} has a parameter whose type JSON cannot carry: {error.message.splitlines()[0]}"
        ) from error
    schema.pop("title", None)
    return arguments, schema


def _list_faults(error: ValidationError, ignore: str | None) -> str | None:
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
        if ignore is None or fault["loc"][:1] != (ignore,)
    ]
    more = f"; and {len(faults) - _LISTED_FAULTS} more" if len(faults) > _LISTED_FAULTS else ""
    return ("; ".join(faults[:_LISTED_FAULTS]) + more)[:MAX_ERROR_CHARS] or None


def plain_json(returned: Any) -> JsonValue:
    """Return a tool's result as plain JSON of any size; `fit_outputs` limits it before it is saved."""
    try:
        plain: JsonValue = to_jsonable_python(returned)
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidJson(f"The tool ran, but what it returned is not JSON: {error}") from error
    try:
        with suppress(TooLarge):
            check_json(plain)
    except InvalidJson as error:
        raise InvalidJson(f"The tool ran, but what it returned is not JSON: {error.message}") from error
    return plain
