"""Plan how a call about to start stands in the journal of its run."""

from sayso.records.suspensions import Intent, SuspensionRecord
from sayso.runner.batches import PlannedCall
from sayso.transitions.execution import Fence


def plan_call(record: SuspensionRecord, fence: Fence, planned: PlannedCall, step: int) -> Intent:
    """Return what the journal is told of a call about to start."""
    call = planned.call
    return Intent(
        item_id=planned.item_id,
        call_id=call.call_id,
        index=call.index,
        tool=call.name,
        idempotency_key=planned.key or f"{record.id}:{planned.item_id or f'{step}.{call.index}'}",
        idempotent=planned.idempotent,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=0,
    )
