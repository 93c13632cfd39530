"""Claim items, and ask their requesters."""

from dataclasses import dataclass
from hashlib import sha256

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.inquiring import answer_inquiry, ask_requester, claim, release_claim
from sayso.errors import DeadlinePassed
from service.desk.reviewing import Reviewing
from service.store.suspensions.saving import Saved, Verb


@dataclass(frozen=True)
class Inquiring:
    """Operations of reviewers before they decide, and the answers of requesters."""

    reviewing: Reviewing

    async def claim(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Claim an item for 15 minutes; raises `Conflict` while another reviewer holds it."""
        freezes = await self.reviewing.changes.freezes()

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            lost_ms = self.reviewing.frozen_ms(record, item_id, freezes, now_ms)
            return claim(record, item_id, by, now_ms, lost_ms)

        return await self._change(suspension_id, transition)

    async def release_claim(self, suspension_id: str, item_id: str, by: Actor) -> Saved:
        """Release one's own claim."""
        return await self._change(suspension_id, lambda record, now_ms: release_claim(record, item_id, by, now_ms))

    async def ask_requester(
        self, suspension_id: str, item_id: str, text: str, by: Actor, key: str | None = None
    ) -> Saved:
        """Put a question to the requester; a repeated `key` of the same reviewer asks once."""
        inquiry_id = f"inq_{sha256(f'{by.id} {key}'.encode()).hexdigest()[:32]}" if key else new_id("inq")
        freezes = await self.reviewing.changes.freezes()

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            lost_ms = self.reviewing.frozen_ms(record, item_id, freezes, now_ms)
            return ask_requester(record, item_id, inquiry_id, text, by, now_ms, lost_ms)

        return await self._change(suspension_id, transition)

    async def answer_inquiry(self, suspension_id: str, item_id: str, inquiry_id: str, text: str, by: Actor) -> Saved:
        """Save the requester's answer."""
        freezes = await self.reviewing.changes.freezes()

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            lost_ms = self.reviewing.frozen_ms(record, item_id, freezes, now_ms)
            return answer_inquiry(record, item_id, inquiry_id, text, by, now_ms, lost_ms)

        return await self._change(suspension_id, transition)

    async def _change(self, suspension_id: str, transition: Verb) -> Saved:
        try:
            return await self.reviewing.changes.suspensions.change(suspension_id, transition)
        except DeadlinePassed:
            await self.reviewing.scheduling.tick(suspension_id)
            raise
