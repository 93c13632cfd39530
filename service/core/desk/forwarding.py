"""Hand items on to other reviewers."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor, ForwardRequest
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deliveries import forward
from service.core.desk.changes import build_idempotency
from service.core.desk.reviewing import Reviewing
from service.core.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Forwarding:
    """Forwards of open items. They widen nothing: who may decide, and until when, stays."""

    reviewing: Reviewing

    async def forward(
        self,
        suspension_id: str,
        item_id: str,
        request: ForwardRequest,
        people: Sequence[Actor],
        by: Actor,
        key: str | None = None,
    ) -> Saved:
        """Ask others to decide an item: the active `people` behind the recipient. A repeated `key` asks once.

        Raises as the transition does.
        """
        forward_id = new_id("fwd")
        facts: list[JsonValue] = ["forward", suspension_id, item_id, request.model_dump(mode="json")]
        seen = build_idempotency(by.id, key, facts, suspension_id)
        await self.reviewing.check()

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            return forward(record, item_id, request, forward_id, people, by, now_ms, lost_ms)

        async with self.reviewing.ticking(suspension_id):
            verb = await self.reviewing.in_time(item_id, act)
            return await self.reviewing.changes.change(suspension_id, verb, seen)
