"""Hand decided runs to waiting workers, and take them back from workers that are gone."""

from collections.abc import Callable
from dataclasses import dataclass

from sayso.core.policy.engine import Policy
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.execution import Fence, forget_start, hand_over, take_back
from sayso.core.transitions.freezing import check_start, tools_to_start
from sayso.errors import Conflict, Frozen
from service.desk.changes import Changes
from service.store.suspensions.saving import Saved, Verb


@dataclass(frozen=True)
class Handing:
    """Operations on runs that a decision hands to a worker."""

    changes: Changes
    policy: Callable[[], Policy]

    async def prepare(self) -> None:
        """Find out which workers wait, before a run gets ready."""
        await self.changes.suspensions.waiting.look()

    def hand_on(self, verb: Verb, freezes: tuple[Freeze, ...]) -> Verb:
        """Return the transition with its ready run handed to a waiting worker, if what is frozen is still known then.

        Rules that remember count calls as they start, which only their worker does.
        """
        until_ms = self.changes.sure_until_ms()

        def handing(record: SuspensionRecord, now_ms: int) -> Change:
            change = verb(record, now_ms)
            worker = self.changes.suspensions.waiting.choose() if change.ready else None
            late = bool(until_ms) and now_ms > until_ms
            if worker is None or late or self.changes.doubt_time(freezes, now_ms) or self.policy().remembering:
                return change
            handed = hand_over(change, worker, now_ms)
            return handed._replace(until_ms=until_ms) if handed.handed_to else change

        return handing

    async def may_start(self, record: SuspensionRecord, now_ms: int) -> bool:
        """Whether a handed run may still start: nothing of it is frozen, and its permits are not over."""
        freezes, leased = self.changes.doubt_time(await self.changes.freezes(), now_ms), forget_start(record)
        try:
            check_start(freezes, leased, tools_to_start(leased), now_ms)
        except Frozen:
            return False
        return all(now_ms < item.start_by_ms for item in record.items if item.permit is not None)

    async def take_back(self, record: SuspensionRecord) -> Saved | None:
        """Put a handed run that its worker never got on the ready list; None if it has moved on."""
        held = record.lease
        assert held is not None  # noqa: S101  a handed run is leased
        fence = Fence(held.holder, held.attempt, 0)
        try:
            return await self.changes.suspensions.change(
                record.id, lambda current, now_ms: take_back(current, fence, now_ms)
            )
        except Conflict:
            return None
