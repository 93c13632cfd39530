"""Run blocking work in threads that know what the run they serve knows, such as the call a tool is for."""

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


TURN_S = 0.0005
"""How long whoever computes may keep a tool's thread waiting, at most; Python's own 5 ms add up over a call.

A call that is cut off in the middle is in doubt, so what it waits for its turn is a time of doubt too.
"""


def share_turns() -> None:
    """Let the threads of this process take turns quickly."""
    sys.setswitchinterval(TURN_S)


class KnowingThreads(ThreadPoolExecutor):
    """Threads in the context of whoever gives them work; asyncio's own `run_in_executor` leaves it behind."""

    def submit(self, fn: Callable[Given, Returned], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Returned]:
        """Run `fn` in a thread, in a copy of the present context."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
