"""Withdraw what a deleted instance still waits for, quietly; begun anew after a crash it comes to the same."""

from sayso.decisions import Actor, ActorKind
from sayso.errors import Conflict
from service.wiring import Wiring

_BY = Actor(id="provisioner", kind=ActorKind.AGENT, channel="aap")


async def withdraw_all(parts: Wiring, tenant: str, instance_id: str) -> int:
    """Cancel all that waits for this instance's sake; return how much that was."""
    withdrawn = 0
    for suspension_id in await parts.runs.waiting_of(tenant, f"aap:{instance_id}"):
        try:
            await parts.desk.withdraw(tenant, suspension_id, _BY)
            withdrawn += 1
        except Conflict:
            continue  # it was decided at that very moment, or its time was over: it does not wait any more
    await parts.deliveries.forget(tenant, f"gone:{instance_id}")
    return withdrawn
