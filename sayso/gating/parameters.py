"""Parameters of gated functions: receivers, what a framework injects, arguments of the call, and keys made of them."""

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from types import UnionType
from typing import Any

from sayso.client.requests import new_key
from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.runner.tools import CallContext, describe_error

_RECEIVERS = ("self", "cls")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_INJECTED = {
    ("pydantic_ai", "RunContext"),
    ("agents", "RunContextWrapper"),
    ("autogen_core", "CancellationToken"),
    ("langchain_core", "BaseRunManager"),
    ("langchain_core", "RunnableConfig"),
    ("langgraph", "ToolRuntime"),
    ("parsimony_agents", "AgentContext"),
    ("google", "ReadonlyContext"),
    ("agent_framework", "FunctionInvocationContext"),
    ("mcp", "Context"),
    ("fastmcp", "Context"),
    ("starlette", "HTTPConnection"),
    ("starlette", "Response"),
    ("starlette", "BackgroundTasks"),
    ("click", "Context"),
    ("typer", "Context"),
}
"""Types of values that frameworks pass to a tool beside its arguments, by package and name. Models do not set them."""

_MARKERS = {("langchain_core", "InjectedToolArg"), ("fastapi", "Depends")}
"""Annotations and defaults with the same meaning."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function. `signature` has all but the call's context, with resolved types."""

    signature: inspect.Signature
    receiver: str | None
    injected: frozenset[str]
    stand_in: Callable[..., Any]
    """A function with the reviewed parameters only, to read the tool's definition from. It cannot be called."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that rules and reviewers see."""
        return tuple(name for name in self.signature.parameters if name not in self.injected and name != self.receiver)

    def split(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        """Return the arguments of a call with defaults, and what goes beside them: by position, and by name."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        positional = [
            given.pop(name)
            for name, parameter in self.signature.parameters.items()
            if name == self.receiver or parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        injected = {name: given.pop(name) for name in self.injected if name in given}
        return given, positional, injected


def read_parameters(function: Callable[..., Any], label: str, *, static: bool = False) -> Parameters:
    """Return the parameters of a function or method. Raises `InvalidInput` for anything that cannot be gated."""
    if getattr(function, "with_key", None) is not None and getattr(function, "call", None) is not None:
        raise InvalidInput(f"{label} is gated already. Remove one @gate.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            f"{label} is a generator, which ends after its call and so cannot be reported once. Return a list instead."
        )
    kind = type(function)
    if not inspect.isroutine(function) or (kind.__module__ != "builtins" and inspect.ismethoddescriptor(function)):
        raise InvalidInput(
            f"{label or 'This'} is a {kind.__name__}, not a function. Put @gate directly above the def, "
            "below the decorators of frameworks."
        )
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"The parameters of {label} cannot be read: {error}. Gate a def that calls it.") from error
    receiver = None if static else _find_receiver(function, signature)
    written = {
        name: hint for name, hint in dict(getattr(function, "__annotations__", None) or {}).items() if name != receiver
    }
    try:
        typed = _annotate(function, {name: hint for name, hint in written.items() if name != "return"})
        hints = typing.get_type_hints(typed, include_extras=True)
    except Exception as error:
        raise InvalidInput(f"The types of tool {label} cannot be read: {describe_error(error)}.") from error
    injected = frozenset(
        name
        for name, parameter in signature.parameters.items()
        if name != receiver
        and parameter.kind not in _VARIABLE
        and (_is_injected(hints.get(name)) or _has_marker([parameter.default]))
    )
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name == receiver or hints.get(name) is not CallContext
    ]
    public = inspect.Signature(parameters, return_annotation=_resolve_return(function, written))
    hidden = {receiver, *injected}
    reviewed = [parameter for name, parameter in signature.parameters.items() if name not in hidden]
    stand_in = _annotate(function, {name: hint for name, hint in hints.items() if name not in hidden})
    stand_in.__signature__ = signature.replace(parameters=reviewed)
    return Parameters(public, receiver, injected, stand_in)


def _find_receiver(function: Callable[..., Any], signature: inspect.Signature) -> str | None:
    """Return the first parameter of a method: `self` or `cls`, in a class or without a type."""
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.name not in _RECEIVERS or first.kind not in _POSITIONAL or inspect.ismethod(function):
        return None
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    in_class = bool(outer) and not outer.endswith("<locals>")
    return first.name if in_class or first.annotation is first.empty else None


def _resolve_return(function: Any, annotations: dict[str, Any]) -> Any:
    """Return the type of the result, or its text if a name in it is not defined yet, such as a method's class."""
    written = annotations.get("return", inspect.Signature.empty)
    try:
        hints = typing.get_type_hints(_annotate(function, {"return": written}), include_extras=True)
        return written if written is inspect.Signature.empty else hints["return"]
    except Exception:  # noqa: BLE001 - a type that cannot be read is only shown
        return written


def _annotate(function: Any, annotations: dict[str, Any]) -> Any:
    def stand_in() -> None: ...

    functools.update_wrapper(stand_in, function)
    stand_in.__annotations__ = annotations
    return stand_in


def _is_injected(hint: Any) -> bool:
    if hint is None or hint is type(None):
        return False
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _has_marker(hint.__metadata__) or _is_injected(hint.__origin__)
    if origin in (typing.Union, UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        return bool(members) and all(map(_is_injected, members))
    return not _INJECTED.isdisjoint(_list_kinds(origin or hint))


def _has_marker(values: Any) -> bool:
    kinds = (value if isinstance(value, type) else type(value) for value in values)
    return any(not _MARKERS.isdisjoint(_list_kinds(kind)) for kind in kinds)


def _list_kinds(kind: Any) -> Iterator[tuple[str, str]]:
    for base in getattr(kind, "__mro__", (kind,)):
        yield str(getattr(base, "__module__", "")).partition(".")[0], str(getattr(base, "__name__", ""))


KeyOf = str | Callable[..., str] | None

_CONVERSIONS = (None, "", "r", "s", "a")


def check_key(key: KeyOf, name: str, arguments: Iterable[str]) -> None:
    """Raise `InvalidInput` for a key that the tool's arguments cannot fill."""
    names = tuple(arguments)
    fault = _find_template_fault(key, names) if isinstance(key, str) else _find_function_fault(key, names)
    if fault is not None:
        takes = f"{name} takes {', '.join(names)}." if names else f"{name} takes no arguments."
        label = repr(key) if isinstance(key, str) else f"function {getattr(key, '__name__', 'without a name')}"
        raise InvalidInput(f"The key {label} of {name} cannot be filled: {fault}. {takes}")


def fill_key(key: KeyOf, name: str, args: JsonObject) -> str:
    """Return the key filled with the arguments, or a new one without a key."""
    if key is None:
        return new_key()
    try:
        return key.format(**args) if isinstance(key, str) else key(**args)
    except (KeyError, IndexError, AttributeError, ValueError, TypeError) as error:
        raise InvalidInput(f"The key {key!r} of {name} cannot be filled with its arguments: {error!r}.") from error


def _find_template_fault(key: str, names: tuple[str, ...]) -> str | None:
    try:
        fields = [*_read_fields(key)]
    except ValueError as error:
        return str(error)
    for field, conversion in fields:
        argument = field.partition("[")[0]
        if "." in argument and argument.partition(".")[0] in names:
            return f"{{{field}}} reads an attribute, but arguments are plain JSON. Read a key with [...]"
        if argument not in names:
            return f"{{{field}}} is not an argument"
        if conversion not in _CONVERSIONS:
            return f"{{{field}!{conversion}}} has an unknown conversion. Use !r, !s or !a"
    return None


def _read_fields(template: str) -> Iterator[tuple[str, str | None]]:
    """Yield each field with its conversion, nested fields included. Raises `ValueError` for unbalanced braces."""
    for _, field, spec, conversion in Formatter().parse(template):
        if field is not None:
            yield field, conversion
            yield from _read_fields(spec or "")


def _find_function_fault(key: Callable[..., str] | None, names: tuple[str, ...]) -> str | None:
    if key is None:
        return None
    try:
        signature = inspect.signature(key)
    except ValueError:  # a built-in function without a signature
        return None
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        return f"it is called with every argument by name, but {error}"
    return None
