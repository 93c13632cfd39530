"""Cancel the unfinished runs of a revoked key."""

import structlog

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import RunRef
from sayso.errors import Conflict, NotFound, Unavailable
from service.wiring import Wiring

BY = Actor(id="desk", kind=ActorKind.POLICY, channel="desk")  # the actor who cancels the runs of a revoked key
_LOG = structlog.get_logger(__name__)


async def withdraw_runs(parts: Wiring, name: str) -> int:
    """Cancel the unfinished runs of a revoked key, except unreadable ones; return their number. Idempotent."""
    revocations = await parts.revocation_cache.find(fresh=True)
    cancelled = 0
    for suspension_id in await parts.runs.unfinished_of(name):
        try:
            suspension = await parts.desk.suspensions.read(suspension_id)
            reason = revocations.find_withdrawal(suspension.record.run)
            if reason is not None:
                await withdraw_run(parts, suspension.record.run, reason)
                cancelled += 1
        except Unavailable:
            raise
        except (Conflict, NotFound, ValueError) as error:
            _LOG.warning("run_not_withdrawn", suspension=suspension_id, why=f"{type(error).__name__}: {error}")
    return cancelled


async def withdraw_run(parts: Wiring, run: RunRef, reason: str) -> None:
    """Cancel one run for this reason; raises `Conflict` when it has ended otherwise."""
    await parts.desk.cancel(run.id, BY, reason.removesuffix("."))
