"""Save the results of deliveries of cards."""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.records.deliveries import DeliveryReport
from sayso.transitions.deliveries import record_deliveries
from service.desk.changes import Changes
from service.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Notifying:
    """Operations of the process that delivers cards."""

    changes: Changes

    async def record_deliveries(self, suspension_id: str, reports: Sequence[DeliveryReport]) -> Saved:
        """Save the results of attempts at deliveries; the next escalation step follows if all of a step failed."""
        return await self.changes.suspensions.change(
            suspension_id, lambda record, now_ms: record_deliveries(record, reports, now_ms)
        )
