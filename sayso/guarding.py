"""Refuses tools that a framework starts inside a gated run although no gate has judged them.

An agent that a tool builds, imports or is handed cannot be found before the tool runs. So each adapter guards the
place where its framework executes tools: within a gated run, a tool starts there only if a gate has seen it. The run
is known from a context variable, which threads started inside the run inherit.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sayso.errors import SaysoError

_REFUSED = (
    "{tool} was called inside {place} without review, so it did not run. {owner}, which no gate has seen. Give its "
    "tools to {gated}, list it as a handoff, or put @gate on the function."
)
_MARK = "__sayso_guard__"

Wrapped = TypeVar("Wrapped")


class UnseenTool(SaysoError):
    """A framework was about to run a tool that no gate has seen."""


@dataclass
class GatedRun:
    """The gated run, or the call in it, that this context serves."""

    agent: str
    tool: str = ""
    refusals: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise `UnseenTool` if a tool was refused inside the call, even if its agent continued without it."""
        if self.refusals:
            raise UnseenTool(self.refusals[0])


@dataclass
class _Pass:
    """Lets the framework start one tool."""

    used: bool = False


_RUN: ContextVar[GatedRun | None] = ContextVar("sayso_gated_run", default=None)
_PASS: ContextVar[_Pass | None] = ContextVar("sayso_pass", default=None)
_CARRIED: list[ContextVar[Any]] = [_RUN]
_SEEN: WeakValueDictionary[int, Any] = WeakValueDictionary()
_INSTALLING = threading.Lock()


@contextmanager
def use_gated_run(agent: str) -> Iterator[None]:
    """Guard everything that a framework starts within the block."""
    token, admitted = _RUN.set(GatedRun(agent)), _PASS.set(None)
    try:
        yield
    finally:
        _RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def use_gated_call(tool: str) -> Iterator[GatedRun]:
    """Guard what a gated tool starts. Yields the call, which collects what was refused."""
    outer = _RUN.get()
    running = GatedRun(outer.agent if outer is not None else "", tool)
    token, admitted = _RUN.set(running), _PASS.set(None)
    try:
        yield running
    except Exception as error:
        if running.refusals:
            raise UnseenTool(running.refusals[0]) from error
        raise
    finally:
        _RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def admit() -> Iterator[None]:
    """Let the framework start one tool within the block, the judged one. It must be the first that it starts."""
    token = _PASS.set(_Pass())
    try:
        yield
    finally:
        _PASS.reset(token)


def note_gated(function: Wrapped) -> Wrapped:
    """Note that calls of this function or tool pass a gate of their own."""
    _SEEN[id(function)] = function
    return function


def was_gated(function: Any) -> bool:
    """Return whether calls of this function, method or tool pass a gate of their own."""
    function = getattr(function, "__func__", function)
    return function is not None and _SEEN.get(id(function)) is function


def find_refusal(tool: str, agent: str | None, seen: bool = False) -> str | None:
    """Return why the framework must not start this tool, or None: no gated run is active, or a gate has judged it."""
    run, admitted = _RUN.get(), _PASS.get()
    if run is None or seen:
        return None
    if admitted is not None and not admitted.used:
        admitted.used = True
        return None
    owner = f"It belongs to the agent {agent!r}" if agent else "It belongs to an agent"
    gated = f"the gated agent {run.agent!r}" if run.agent else "the gated agent"
    refusal = _REFUSED.format(tool=tool, place=run.tool or f"the run of {gated}", owner=owner, gated=gated)
    run.refusals.append(refusal)
    return refusal


def refuse_unseen(tool: str, agent: str | None, seen: bool = False) -> None:
    """Raise `UnseenTool` if the framework must not start this tool."""
    refusal = find_refusal(tool, agent, seen)
    if refusal is not None:
        raise UnseenTool(refusal)


def replace_once(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace a function of a class or module by a guard around it, once in this process."""
    with _INSTALLING:
        original = vars(owner)[name]
        plain = getattr(original, "__func__", original)
        if getattr(plain, _MARK, False):
            return
        guard = functools.wraps(plain)(wrap(plain))
        setattr(guard, _MARK, True)
        kind = type(original) if isinstance(original, staticmethod | classmethod) else None
        setattr(owner, name, kind(guard) if kind is not None else guard)


def carry_into_threads(variable: ContextVar[Any] | None = None) -> None:
    """Let threads and thread pools inherit the gated run of the code that starts their work, and `variable` too."""
    if variable is not None and variable not in _CARRIED:
        _CARRIED.append(variable)
    replace_once(threading.Thread, "start", _guard_start)
    replace_once(ThreadPoolExecutor, "submit", _guard_submit)


def _guard_start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(thread: Any) -> Any:
        if held := _capture():
            thread.run = functools.partial(_run_within, held, thread.run)
        return original(thread)

    return start


def _guard_submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(pool: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        held = _capture()
        if not held:
            return original(pool, function, *args, **kwargs)
        clear = copy_context()  # the pool's threads serve others, too
        for variable, _ in held:
            clear.run(variable.set, None)
        return clear.run(original, pool, functools.partial(_run_within, held, function), *args, **kwargs)

    return submit


def _capture() -> list[tuple[ContextVar[Any], Any]]:
    return [(variable, value) for variable in _CARRIED if (value := variable.get(None)) is not None]


def _run_within(held: list[tuple[ContextVar[Any], Any]], function: Any, /, *args: Any, **kwargs: Any) -> Any:
    context = copy_context()
    for variable, value in held:
        context.run(variable.set, value)
    return context.run(function, *args, **kwargs)
