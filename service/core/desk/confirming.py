"""Record what acting users say of the calls that agents make for them."""

from dataclasses import dataclass

from pydantic import JsonValue

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor, ConfirmRequest
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.inquiring import confirm
from service.core.desk.changes import build_idempotency
from service.core.desk.reviewing import Reviewing
from service.core.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Confirming:
    """The operation of acting users: it counts beside the decisions of reviewers, and as none of them."""

    reviewing: Reviewing

    async def confirm(
        self, suspension_id: str, item_id: str, request: ConfirmRequest, by: Actor, key: str | None = None
    ) -> Saved:
        """Record that the acting user confirms a call, or declines it; raises as the transition does."""
        reviewing, confirmation_id = self.reviewing, new_id("con")
        facts: list[JsonValue] = ["confirm", suspension_id, item_id, by.id, request.model_dump(mode="json")]
        seen = build_idempotency(by.id, key, facts, suspension_id)
        await reviewing.check()
        await reviewing.handing.prepare()
        freezes = await reviewing.changes.freezes()

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            frozen_ms = reviewing.frozen_ms(record, item_id, freezes, now_ms)
            return confirm(record, item_id, request, confirmation_id, by, now_ms, frozen_ms)

        async with reviewing.ticking(suspension_id):
            handing = reviewing.handing.hand_on(transition, freezes)
            return await reviewing.changes.change_counted(suspension_id, item_id, handing, seen)
