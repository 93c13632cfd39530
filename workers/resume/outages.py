"""Retries of a worker's steps while the store is away. Each step is named, so one sent twice is applied once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sayso.core.clock import monotonic_ms, new_id
from sayso.core.records.suspensions import Intent, Status, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict, NotFound, Unavailable, Unreadable
from service.core.desk.desk import Desk

Result = TypeVar("Result")

PATIENCE_S = 60
"""Time limit of the retries; while the store is away, no other worker can take the run."""

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
        except Conflict as refusal:
            if refusal.facts.get("status") not in (Status.DECIDED, Status.RESUMING):
                return
        except (NotFound, Unreadable, Unavailable):
            return
        else:
            return
        await asyncio.sleep(_AGAIN_S)
