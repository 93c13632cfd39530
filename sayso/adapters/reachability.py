"""Find what the function of a tool can reach, so that an agent inside of it is seen before any of its tools runs.

The search follows names as Python does: closures, globals, defaults, and the attributes that the code names.
It cannot see what a function looks up under a name made at run time.
"""

import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from inspect import getattr_static
from sysconfig import get_paths
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MOST_THINGS = 5_000
"""The search ends after so many; agents stand near the tools that call them."""

_MOST_ELEMENTS = 1_000
_LIBRARIES = frozenset(
    {
        *sys.stdlib_module_names,
        *("agents", "anyio", "autogen_agentchat", "autogen_core", "autogen_ext", "deepagents", "httpx", "langchain"),
        *("langchain_core", "langgraph", "langsmith", "mcp", "openai", "pydantic", "pydantic_ai", "pydantic_core"),
        *("pydantic_graph", "sayso"),
    }
)
"""Code of these is not followed by its globals: those are not the user's."""

_INSTALLED = tuple(get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLAIN = (str, bytes, int, float, complex, type(None))
_Names = frozenset[str]


def reach(function: Any) -> Iterator[Any]:
    """Yield everything that the function can reach by name, itself first."""
    seen: set[tuple[int, _Names]] = set()
    kept: list[Any] = []  # bound methods made on the way; an id counts while its object lives
    queue: deque[tuple[Any, _Names]] = deque([(function, frozenset())])
    while queue and len(seen) < MOST_THINGS:
        thing, names = queue.popleft()
        if (id(thing), names) in seen or not _is_readable(thing):
            continue
        seen.add((id(thing), names))
        kept.append(thing)
        yield thing
        queue.extend(_list_next(thing, names))


def _is_readable(thing: Any) -> bool:
    """Return whether there is anything behind a thing that could be called."""
    try:
        return not isinstance(thing, _PLAIN)
    except Exception:  # noqa: BLE001 - a proxy that stands for nothing yet raises what it likes
        return False


def _list_next(thing: Any, names: _Names) -> Iterator[tuple[Any, _Names]]:
    """Yield what stands one step from there, with the names that the code in hand uses."""
    if isinstance(thing, partial):
        yield from ((one, names) for one in (thing.func, *thing.args, *thing.keywords.values()))
    elif isinstance(thing, MethodType):
        used = names | _list_names(thing.__func__)
        yield from ((thing.__func__, names), (thing.__self__, used))
    elif isinstance(thing, FunctionType):
        used = _list_names(thing)
        yield from ((one, used) for one in _list_bound(thing, used))
    elif isinstance(thing, dict):
        yield from ((one, names) for one in list(thing.values())[:_MOST_ELEMENTS])
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((one, names) for one in list(thing)[:_MOST_ELEMENTS])
    else:
        yield from ((one, names) for one in _list_attributes(thing, names))


def _list_names(function: Any) -> _Names:
    """Return the names that a function's code and the functions inside of it use."""
    found: set[str] = set()
    codes = [getattr(function, "__code__", None)]
    while codes:
        code = codes.pop()
        if isinstance(code, CodeType):
            found.update(code.co_names)
            codes.extend(code.co_consts)
    return frozenset(found)


def _list_bound(function: FunctionType, names: _Names) -> Iterator[Any]:
    """Yield what a function holds: what it wraps, its closure, its defaults, and its globals by name."""
    yield getattr(function, "__wrapped__", None)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the cell is empty: the name is not bound yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if not _is_library(function.__module__):
        yield from (function.__globals__[name] for name in names if name in function.__globals__)


def _list_attributes(thing: Any, names: _Names) -> Iterator[Any]:
    """Yield the attributes that the code names, with the methods of an object bound to it."""
    own = getattr(thing, "__dict__", {})
    yield from (own[name] for name in names if name in own)
    if isinstance(thing, ModuleType):
        return
    kind = thing if isinstance(thing, type) else type(thing)
    known = names if not _is_library(kind.__module__) else ()
    if kind is thing:
        yield getattr_static(thing, "__init__", None) if known else None
        return
    for name in ("__call__", *known):
        found = getattr_static(kind, name, None)
        found = found.fget if isinstance(found, property) else found
        if isinstance(found, FunctionType):
            yield MethodType(found, thing)


def _is_library(module: str | None) -> bool:
    """Return whether a module is Python's or a framework's: a user may have one of the same name, such as `agents`."""
    root = (module or "").partition(".")[0]
    if root not in _LIBRARIES or root not in sys.modules:
        return False
    place = getattr(sys.modules[root], "__file__", None) or "".join([*getattr(sys.modules[root], "__path__", ())][:1])
    return root in {"sayso", *sys.builtin_module_names} or place.startswith(_INSTALLED)
