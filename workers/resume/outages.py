"""Take a worker's steps through a store that is away for a while: what its calls came to must not be lost for that.

A step that is sent again is taken once: it is named by its fence, and the lease remembers the last one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sayso.clock import monotonic_ms, new_id
from sayso.errors import Conflict, NotFound, Unavailable, Unreadable
from sayso.records.suspensions import Intent, Status, SuspensionRecord
from sayso.records.tool_calls import ToolResult
from sayso.transitions.execution import Fence
from service.desk.desk import Desk

Came = TypeVar("Came")
"""What a step comes to."""

PATIENCE_S = 60
"""How long a step waits for the store; while that is away, nobody else can take the run either."""

_AGAIN_S = 0.1
_REPORTS = 100


def next_step(fence: Fence) -> Fence:
    """Return the fence for one more step."""
    return fence._replace(step=new_id("step"))


async def through_outages(step: Callable[[], Awaitable[Came]]) -> Came:
    """Take a step, again and again while the store is away; raises what it raises, `Unavailable` only in the end."""
    give_up_at_ms = monotonic_ms() + PATIENCE_S * 1000
    while True:
        try:
            return await step()
        except Unavailable:
            if monotonic_ms() >= give_up_at_ms:
                raise
        await asyncio.sleep(_AGAIN_S)


async def report_late(desk: Desk, record: SuspensionRecord, intent: Intent, result: ToolResult) -> None:
    """Tell what a call came to whose run another attempt has by now: it may be asking a person about it.

    The other attempt may be about to ask only: so it is told a few times, until somebody asks or the run has moved on.
    """
    for _ in range(_REPORTS):
        try:
            await through_outages(lambda: desk.report(record.run.id, intent.idempotency_key, intent.holder, result))
        except Conflict as refusal:
            if refusal.facts.get("status") not in (Status.DECIDED, Status.RESUMING):
                return
        except (NotFound, Unreadable, Unavailable):
            return
        else:
            return
        await asyncio.sleep(_AGAIN_S)
