"""The gated run that a context serves, the tools that may start in it, and guards that threads of the run inherit."""

import _thread
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from multiprocessing.pool import Pool, ThreadPool
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sayso.errors import SaysoError

_REFUSED = (
    "{tool} was called inside {place} without review, so it did not run. {owner}, which no gate has seen. Give its "
    "tools to {gated}, list it as a handoff, or put @gate on the function."
)

Wrapped = TypeVar("Wrapped")


class UnseenTool(SaysoError):
    """A framework was about to run a tool that no gate has seen."""


@dataclass
class GatedRun:
    """The gated run, or the call in it, that this context serves."""

    agent: str
    tool: str = ""
    admits: Callable[[str], bool] | None = None
    refusals: list[str] = field(default_factory=list)
    asked_model: bool = False

    def check(self) -> None:
        """Raise `UnseenTool` if a tool was refused inside the call, even if its agent continued without it."""
        if self.refusals:
            raise UnseenTool(self.refusals[0])


@dataclass
class _Pass:
    """Lets the framework start one tool."""

    used: bool = False


RUN: ContextVar[GatedRun | None] = ContextVar("sayso_gated_run", default=None)
_PASS: ContextVar[_Pass | None] = ContextVar("sayso_pass", default=None)
_SEEN: WeakValueDictionary[int, Any] = WeakValueDictionary()


@contextmanager
def use_gated_run(agent: str, admits: Callable[[str], bool] | None = None) -> Iterator[None]:
    """Guard everything that a framework starts within the block. `admits` uses up an approval of a tool, by name."""
    token, admitted = RUN.set(GatedRun(agent, admits=admits)), _PASS.set(None)
    try:
        yield
    finally:
        RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def use_gated_call(tool: str) -> Iterator[GatedRun]:
    """Guard what a gated tool starts. Yields the call, which collects what was refused."""
    outer = RUN.get()
    running = GatedRun(outer.agent if outer is not None else "", tool)
    token, admitted = RUN.set(running), _PASS.set(None)
    try:
        yield running
    except Exception as error:
        if running.refusals:
            raise UnseenTool(running.refusals[0]) from error
        raise
    finally:
        RUN.reset(token)
        _PASS.reset(admitted)


@contextmanager
def admit() -> Iterator[None]:
    """Let the framework start one tool within the block, the judged one. It must be the first that it starts."""
    token = _PASS.set(_Pass())
    try:
        yield
    finally:
        _PASS.reset(token)


def admit_unseen(tool: str) -> bool:
    """Return whether an approval is left for this tool, which its framework runs out of sight, and use it up."""
    run = RUN.get()
    return run is not None and run.admits is not None and run.admits(tool)


def note_model() -> None:
    """Note that a model was asked in this context."""
    run = RUN.get()
    if run is not None:
        run.asked_model = True


def was_model_asked() -> bool:
    """Return whether the tool of this gated call has asked a model."""
    run = RUN.get()
    return run is not None and run.tool != "" and run.asked_model


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
    run, admitted = RUN.get(), _PASS.get()
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


_MARK = "__sayso_guard__"
"""The attribute of a guard, which marks what is replaced already."""

_INSTALLING = threading.Lock()


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


def carry_into_threads() -> None:
    """Let threads and pools of threads inherit the gated run of the code that starts their work."""
    replace_once(threading.Thread, "start", _guard_start)
    replace_once(_thread, "start_new_thread", _guard_new_thread)
    replace_once(ThreadPoolExecutor, "submit", _guard_argument("fn"))
    for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
        replace_once(Pool, name, _guard_argument("func"))
    for kind in (ThreadPoolExecutor, ThreadPool):
        replace_once(kind, "__init__", _guard_argument("initializer"))


def _guard_start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(thread: Any) -> Any:
        if (run := RUN.get()) is not None:
            thread.run = functools.partial(_run_within, run, thread.run)
        return original(thread)

    return start


def _guard_new_thread(original: Callable[..., Any]) -> Callable[..., Any]:
    def start_new_thread(function: Any, *args: Any) -> Any:
        run = RUN.get()
        return original(function if run is None else functools.partial(_run_within, run, function), *args)

    return start_new_thread


def _guard_argument(name: str) -> Callable[[Any], Any]:
    """Return a guard of a pool's method, whose argument of this name is a function for its threads."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def submit(*args: Any, **kwargs: Any) -> Any:
            run = RUN.get()
            if run is None or not isinstance(args[0], ThreadPoolExecutor | ThreadPool):
                return original(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            if (function := given.arguments.get(name)) is not None:
                given.arguments[name] = functools.partial(_run_within, run, function)
            # The threads of a pool serve other runs, too.
            clear = copy_context()
            clear.run(RUN.set, None)
            return clear.run(original, *given.args, **given.kwargs)

        return submit

    return wrap


def _run_within(run: GatedRun, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    context = copy_context()
    context.run(RUN.set, run)
    return context.run(function, *args, **kwargs)
