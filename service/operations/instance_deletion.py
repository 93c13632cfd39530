"""Withdraw the pending suspensions of a deleted instance; idempotent."""

from sayso.core.records.decisions import Actor, ActorKind
from sayso.errors import Conflict, DeadlinePassed
from service.store.deliveries import Deliveries
from service.wiring import Wiring

_BY = Actor(id="provisioner", kind=ActorKind.AGENT, channel="aap")
_AGAIN_MS = 5_000  # delay before suspensions past their deadline are checked again


async def withdraw_all(parts: Wiring, instance_id: str) -> int:
    """Cancel all pending suspensions of the instance; return their number."""
    withdrawn, late = 0, False
    for suspension_id in await parts.runs.waiting_of(f"aap:{instance_id}"):
        try:
            await parts.desk.withdraw(suspension_id, _BY)
            withdrawn += 1
        except DeadlinePassed:
            late = True  # its fallback has decided, or the clock is in doubt
        except Conflict:
            continue  # it was decided in the meantime
    if late:
        await parts.part(Deliveries).defer(f"gone:{instance_id}", await parts.schedule.now_ms() + _AGAIN_MS)
    else:
        await parts.part(Deliveries).forget(f"gone:{instance_id}")
    return withdrawn
