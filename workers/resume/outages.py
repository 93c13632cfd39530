"""Retries of a worker's steps, each named, while the store is away, and renewal of the lease of a driven run."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from sayso.core.clock import monotonic_ms, new_id
from sayso.core.records.suspensions import Intent, Status, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict, NotFound, Unavailable, Unreadable
from service.core.desk.desk import Desk

Result = TypeVar("Result")

PATIENCE_S = 60  # time limit of the retries; while the store is away, no other worker can take the run
_AGAIN_S = 0.1
_REPORTS = 100


def next_step(fence: Fence) -> Fence:
    """Return the fence of one more step."""
    return fence._replace(step=new_id("step"))


async def through_outages(step: Callable[[], Awaitable[Result]]) -> Result:
    """Take a step, and repeat it while the store is away, for at most `PATIENCE_S`."""
    give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
    while True:
        try:
            return await step()
        except Unavailable:
            if monotonic_ms() >= give_up_at_ms:
                raise
        await asyncio.sleep(_AGAIN_S)


async def report_late(desk: Desk, record: SuspensionRecord, intent: Intent, result: ToolResult) -> None:
    """Report the result of a call although another attempt holds the run, until that attempt has saved or moved on."""
    for _ in range(_REPORTS):
        try:
            await through_outages(lambda: desk.report(record.run.id, intent.idempotency_key, intent.holder, result))
            return
        except Conflict as refusal:
            if refusal.facts.get("status") not in (Status.DECIDED, Status.RESUMING):
                return
        except (NotFound, Unreadable, Unavailable):
            return
        await asyncio.sleep(_AGAIN_S)


@contextmanager
def renewed(desk: Desk, suspension_id: str, fence: Fence) -> Iterator[None]:
    """Renew the lease each third of its length during the block. A task starts only once the first third is over."""
    renewing: list[asyncio.Task[None]] = []

    async def renew() -> None:
        with suppress(Conflict, Unreadable):
            while True:
                with suppress(Unavailable):
                    await desk.renew(suspension_id, fence)
                await asyncio.sleep(fence.lease_ms / 3000)

    first = asyncio.get_running_loop().call_later(
        fence.lease_ms / 3000, lambda: renewing.append(asyncio.create_task(renew()))
    )
    try:
        yield
    finally:
        first.cancel()
        for task in renewing:
            task.cancel()


Given = ParamSpec("Given")
Returned = TypeVar("Returned")
TURN_S = 0.0005  # longest time that another thread keeps a tool waiting; Python's default of 5 ms adds up over a call


def share_turns() -> None:
    """Set the switch interval of this process to `TURN_S`."""
    sys.setswitchinterval(TURN_S)


class ContextThreads(ThreadPoolExecutor):
    """A thread pool whose work runs in its submitter's context; `run_in_executor` alone drops it."""

    def submit(self, fn: Callable[Given, Returned], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Returned]:
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
