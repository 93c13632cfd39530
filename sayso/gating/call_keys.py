"""Keys of gated calls: templates and functions, checked against the call's arguments."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from string import Formatter

from sayso.canonical_json import JsonObject
from sayso.client.requests import new_key
from sayso.errors import InvalidInput

KeyOf = str | Callable[..., str] | None

_CONVERSIONS = (None, "", "r", "s", "a")


def check_key(key: KeyOf, name: str, arguments: Iterable[str]) -> None:
    """Raise `InvalidInput` for a key that the tool's arguments cannot fill."""
    names = tuple(arguments)
    fault = _find_template_fault(key, names) if isinstance(key, str) else _find_function_fault(key, names)
    if fault is not None:
        takes = f"{name} takes {', '.join(names)}." if names else f"{name} takes no arguments."
        raise InvalidInput(f"The key {_describe(key)} of {name} cannot be filled: {fault}. {takes}")


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


def _describe(key: KeyOf) -> str:
    return repr(key) if isinstance(key, str) else f"function {getattr(key, '__name__', 'without a name')}"
