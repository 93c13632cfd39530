"""Guards that replace functions, and threads that inherit the gated run of the code that starts their work."""

import _thread
import functools
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from multiprocessing.pool import Pool, ThreadPool
from typing import Any

from sayso.guarding.runs import RUN, GatedRun

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
            return _clear_context().run(original, *given.args, **given.kwargs)

        return submit

    return wrap


def _clear_context() -> Context:
    """Return this context without its run, for the threads of a pool: they serve others, too."""
    clear = copy_context()
    clear.run(RUN.set, None)
    return clear


def _run_within(run: GatedRun, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    context = copy_context()
    context.run(RUN.set, run)
    return context.run(function, *args, **kwargs)
