"""Threads for blocking work that keep the context of the run they serve, such as its current call."""

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
TURN_S = 0.0005
"""Longest time that another thread keeps a tool waiting; Python's default of 5 ms adds up over a call."""


def share_turns() -> None:
    """Set the switch interval of this process to `TURN_S`."""
    sys.setswitchinterval(TURN_S)


class ContextThreads(ThreadPoolExecutor):
    """A thread pool whose work runs in its submitter's context; `run_in_executor` alone drops it."""

    def submit(self, fn: Callable[Given, Returned], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Returned]:
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
