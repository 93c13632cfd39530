"""Search for the objects that a tool's function can reach by closures, globals, defaults and named attributes."""

import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from inspect import getattr_static
from sysconfig import get_paths
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MAX_OBJECTS = 5_000
"""The limit of the search. Agents are usually near the tools that call them."""

_MAX_ELEMENTS = 1_000
_LIBRARIES = frozenset(
    {
        *sys.stdlib_module_names,
        *("agent_framework", "agents", "anyio", "autogen_agentchat", "autogen_core", "autogen_ext", "deepagents"),
        *("google", "httpx", "langchain", "langchain_core", "langgraph", "langsmith", "mcp", "openai", "pydantic"),
        *("pydantic_ai", "pydantic_core", "pydantic_graph", "sayso"),
    }
)
"""Modules whose globals are not followed, because they hold no user objects."""

_INSTALLED = tuple(get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLAIN = (str, bytes, int, float, complex, type(None))
_Names = frozenset[str]


def reach(function: Any) -> Iterator[Any]:
    """Yield every object that the function can reach, itself first."""
    seen: set[tuple[int, _Names]] = set()
    kept: list[Any] = []  # keeps bound methods alive, because `seen` holds their ids
    queue: deque[tuple[Any, _Names]] = deque([(function, frozenset())])
    while queue and len(seen) < MAX_OBJECTS:
        target, names = queue.popleft()
        if (id(target), names) in seen or not _is_readable(target):
            continue
        seen.add((id(target), names))
        kept.append(target)
        yield target
        queue.extend(_list_neighbours(target, names))


def _is_readable(target: Any) -> bool:
    try:
        return not isinstance(target, _PLAIN)
    except Exception:  # noqa: BLE001 - an unbound proxy may raise anything
        return False


def _list_neighbours(target: Any, names: _Names) -> Iterator[tuple[Any, _Names]]:
    """Yield the objects one step away, each with the names that the code at hand uses."""
    if isinstance(target, partial):
        yield from ((part, names) for part in (target.func, *target.args, *target.keywords.values()))
    elif isinstance(target, MethodType):
        used = names | _list_names(target.__func__)
        yield from ((target.__func__, names), (target.__self__, used))
    elif isinstance(target, FunctionType):
        used = _list_names(target)
        yield from ((bound, used) for bound in _list_bound(target, used))
    elif isinstance(target, dict):
        yield from ((value, names) for value in list(target.values())[:_MAX_ELEMENTS])
    elif isinstance(target, list | tuple | set | frozenset):
        yield from ((element, names) for element in list(target)[:_MAX_ELEMENTS])
    else:
        yield from ((attribute, names) for attribute in _list_attributes(target, names))


def _list_names(function: Any) -> _Names:
    names: set[str] = set()
    codes = [getattr(function, "__code__", None)]
    while codes:
        code = codes.pop()
        if isinstance(code, CodeType):
            names.update(code.co_names)
            codes.extend(code.co_consts)
    return frozenset(names)


def _list_bound(function: FunctionType, names: _Names) -> Iterator[Any]:
    """Yield the objects that a function holds: wrapped function, closure, defaults and named globals."""
    yield getattr(function, "__wrapped__", None)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the name is not bound yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if not _is_library(function.__module__):
        yield from (function.__globals__[name] for name in names if name in function.__globals__)


def _list_attributes(target: Any, names: _Names) -> Iterator[Any]:
    """Yield the attributes that the code names. Methods are bound to their object."""
    own = getattr(target, "__dict__", {})
    yield from (own[name] for name in names if name in own)
    if isinstance(target, ModuleType):
        return
    kind = target if isinstance(target, type) else type(target)
    followed = names if not _is_library(kind.__module__) else ()
    if kind is target:
        yield getattr_static(target, "__init__", None) if followed else None
        return
    for name in ("__call__", *followed):
        attribute = getattr_static(kind, name, None)
        attribute = attribute.fget if isinstance(attribute, property) else attribute
        if isinstance(attribute, FunctionType):
            yield MethodType(attribute, target)


def _is_library(module: str | None) -> bool:
    """Return whether a module is Python's or a framework's. A module of the user may share the name."""
    root = (module or "").partition(".")[0]
    if root not in _LIBRARIES or root not in sys.modules:
        return False
    file = getattr(sys.modules[root], "__file__", None) or "".join([*getattr(sys.modules[root], "__path__", ())][:1])
    return root in {"sayso", *sys.builtin_module_names} or file.startswith(_INSTALLED)
