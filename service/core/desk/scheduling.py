"""Ticks of due suspensions, and the results of deliveries of their cards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sayso.core.records.deliveries import DeliveryReport
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.deciding import void_decisions
from sayso.core.transitions.deliveries import move_cards, record_deliveries
from sayso.core.transitions.due import tick, void_starts, wake
from service.core.desk.changes import Changes, Start, Unsure, draft_following
from service.core.store.suspensions.batches import PrecomputedCommit
from service.core.store.suspensions.saving import Saved


def _check_sure(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record; raises `Unsure` if a decision may take effect, for its author may have been deactivated."""
    if record.status is Status.PENDING and any(item.undoable is not None for item in record.items):
        raise Unsure
    return record


@dataclass(frozen=True)
class Precomputed:
    """The commits of the next due times, valid while `freezes` are the freezes."""

    freezes: tuple[Freeze, ...]
    commits: tuple[PrecomputedCommit, ...]


@dataclass(frozen=True)
class Scheduling:
    """Operations that time causes, and those of the process that delivers cards."""

    changes: Changes

    async def tick(self, suspension_id: str, queued_since_ms: int | None = None) -> Saved:
        """Apply what is due for a suspension: its fallback, reminder, escalation, or a place in the ready list.

        A frozen suspension is due again later; after an unfreeze its deadlines are shifted. A suspension in the ready
        list since `queued_since_ms` or later is not added again.
        """
        try:
            return await self.changes.start(suspension_id, self._build_tick(queued_since_ms))
        except Unsure:
            inactive = await self.changes.suspensions.find_inactive()
            return await self.changes.start(suspension_id, self._build_tick(queued_since_ms, inactive))

    async def tick_batch(self, suspension_ids: Sequence[str], queued_since_ms: int | None = None) -> list[str]:
        """Tick a batch in one script; return those that need a separate tick, as for a decision that takes effect."""
        verb, until_ms = await self.changes.limit(self._build_tick(queued_since_ms))
        return await self.changes.suspensions.due_batches.change(suspension_ids, verb, until_ms)

    async def precompute(self, suspension_ids: Sequence[str], until_ms: int) -> Precomputed:
        """Return the commit of each suspension's next due time, and save nothing."""
        freezes = await self.changes.freezes()
        commits = await self.changes.suspensions.due_batches.precompute(
            suspension_ids, lambda record, at_ms: tick(_check_sure(record), freezes, at_ms), until_ms
        )
        return Precomputed(freezes, commits)

    async def fulfil(self, precomputed: Precomputed, now_ms: int) -> list[str]:
        """Save due commits; return those that need a tick: all, if freezes changed or the clock is in doubt."""
        freezes = await self.changes.freezes()
        if self.changes.doubt_time(freezes, now_ms) != precomputed.freezes:
            return [commit.suspension_id for commit in precomputed.commits]
        return await self.changes.suspensions.due_batches.fulfil(precomputed.commits, self.changes.sure_until_ms())

    async def wake(self, suspension_id: str, freeze: Freeze) -> Saved:
        """Resume a suspension that `freeze` held before it ended."""
        freezes = await self.changes.freezes()
        return await self.changes.change(suspension_id, lambda record, now_ms: wake(record, freeze, freezes, now_ms))

    async def void_starts(self, suspension_id: str, holder: str, why: str) -> Saved:
        """Void the permits and the lease of a suspension whose store lost its latest changes."""

        def void(record: SuspensionRecord, now_ms: int) -> Change:
            return void_starts(record, draft_following(record, None, record.step), holder, why, now_ms)

        return await self.changes.change(suspension_id, void)

    def _build_tick(self, queued_since_ms: int | None, inactive: frozenset[str] | None = None) -> Start:
        """Return the tick; without knowing who is inactive, it raises `Unsure` if a decision may take effect."""

        def start(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            known = self.changes.doubt_time(freezes, now_ms)
            if inactive is None or record.status is not Status.PENDING:
                return tick(_check_sure(record), known, now_ms, queued_since_ms)
            voided = void_decisions(record, inactive, now_ms)
            change = tick(voided.record, known, now_ms, queued_since_ms)
            return change._replace(events=voided.events + change.events) if voided.events else change

        return start

    async def record_deliveries(self, suspension_id: str, reports: Sequence[DeliveryReport]) -> Saved:
        """Save the results of attempts at deliveries; the next escalation step follows if all of a step failed."""
        return await self.changes.change(
            suspension_id, lambda record, now_ms: record_deliveries(record, reports, now_ms)
        )

    async def move_cards(self, suspension_id: str, chains: Mapping[str, tuple[str, ...]]) -> Saved:
        """Queue the cards of absent people for their delegates; `chains` has the delegates of each in turn."""
        return await self.changes.change(suspension_id, lambda record, now_ms: move_cards(record, chains, now_ms))
