"""Frameworks that hold a function before it is gated, or call it again after an error."""

import functools
import gc
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

from sayso.errors import InvalidInput

_KEEPERS = {
    "pydantic_ai": "Pydantic AI",
    "mcp": "the MCP SDK",
    "fastmcp": "FastMCP",
    "fastapi": "FastAPI",
    "typer": "Typer",
}
"""Frameworks whose decorators return the function itself. Those of others return a tool, which `gate` refuses."""

_CONTAINERS = (dict, list, tuple, staticmethod, classmethod, MethodType, functools.partial)
_DEPTH = 3  # such as a static method in the dict of an object


def check_unregistered(function: Any, label: str, references: int = 1) -> None:
    """Raise `InvalidInput` for a function that a framework calls already: it holds the one without a gate.

    A function that only `references` frames of callers refer to needs no search, which takes milliseconds.
    """
    held = getattr(function, "__func__", function)
    if not isinstance(held, FunctionType) or _KEEPERS.keys().isdisjoint(sys.modules):
        return
    if sys.version_info < (3, 14) and _count(function) <= _UNKNOWN + references:  # later ones count otherwise
        return
    keeper = next(_find_keepers(held), None)
    if keeper is not None:
        raise InvalidInput(
            f"{label} is registered with {_KEEPERS[keeper]} already, which would run it without a permit. "
            "Put @gate directly above the def, below the decorators of frameworks."
        )


def _count(function: Any) -> int:
    return sys.getrefcount(function)


def _check_nothing(function: Any) -> int:
    return _count(function)


def _pass_on(function: Any) -> int:
    return _check_nothing(function)


_UNKNOWN = _pass_on(lambda: None)
"""The references to a function that nobody knows, counted below one frame of a caller and the check."""


def _find_keepers(function: Any) -> Iterator[str]:
    """Yield the packages of objects that refer to a function, directly or through containers."""
    holders: list[Any] = [function]
    for _ in range(_DEPTH):
        referrers = gc.get_referrers(*holders)
        holders = []
        for referrer in referrers:
            package = str(type(referrer).__module__).partition(".")[0]
            if package in _KEEPERS:
                yield package
            elif isinstance(referrer, _CONTAINERS) and not _is_namespace(referrer):
                holders.append(referrer)
        if not holders:
            return


def _is_namespace(referrer: Any) -> bool:
    return isinstance(referrer, dict) and "__name__" in referrer and "__builtins__" in referrer


_BETWEEN = frozenset({"sayso", *sys.stdlib_module_names})
"""Packages whose frames lie between a gated function and the code that calls it."""

_REPEATING = frozenset({"crewai"})
"""Frameworks that call a tool which raises again, with the same arguments."""


def is_called_again() -> bool:
    """Return whether a framework calls this gated function directly, and would call it again if it raised."""
    if _REPEATING.isdisjoint(sys.modules):
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _BETWEEN:
            return package in _REPEATING
        frame = frame.f_back
    return False
