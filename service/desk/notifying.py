"""Save the results of deliveries of cards, and move cards to delegates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sayso.core.records.deliveries import DeliveryReport
from sayso.core.transitions.deliveries import move_cards, record_deliveries
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

    async def move_cards(self, suspension_id: str, chains: Mapping[str, tuple[str, ...]]) -> Saved:
        """Queue the cards of absent people for their delegates; `chains` has the delegates of each in turn."""
        return await self.changes.suspensions.change(
            suspension_id, lambda record, now_ms: move_cards(record, chains, now_ms)
        )
