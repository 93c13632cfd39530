"""Ask workers what calls would do, and store what they say."""

from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.previews import Preview
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.freezing import check_start
from sayso.core.transitions.inquiring import request_preview, store_preview
from service.core.desk.changes import build_idempotency
from service.core.desk.reviewing import Reviewing
from service.core.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Previewing:
    """Previews of open items."""

    reviewing: Reviewing

    async def request_preview(
        self, suspension_id: str, item_id: str, args: JsonObject | None, by: Actor, key: str | None = None
    ) -> Saved:
        """Ask the workers for a preview of an item, or of edited arguments.

        Raises as the transition does, and `Frozen` while nothing of its tool may start.
        """
        changes = self.reviewing.changes
        seen = build_idempotency(by.id, key, ["preview", suspension_id, item_id, args], suspension_id)
        if args is not None:
            item = find_item((await changes.suspensions.read(suspension_id)).record, item_id)
            edit = DecisionRequest(action="approve", digest=item.digest, args=args)
            args = (await self.reviewing.settle(suspension_id, item_id, edit)).args

        freezes = await changes.freezes()

        def act(record: SuspensionRecord, now_ms: int, lost_ms: int) -> Change:
            check_start(freezes, record, (find_item(record, item_id).tool.name,), now_ms)
            return request_preview(record, item_id, args, by, now_ms, lost_ms)

        async with self.reviewing.ticking(suspension_id):
            return await changes.change(suspension_id, await self.reviewing.in_time(item_id, act), seen)

    async def store_preview(self, suspension_id: str, item_id: str, preview: Preview) -> Saved:
        """Store the preview that a worker made."""

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            return store_preview(record, item_id, preview.model_copy(update={"at_ms": now_ms}), now_ms)

        return await self.reviewing.changes.change(suspension_id, transition)
