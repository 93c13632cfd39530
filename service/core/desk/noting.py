"""Write to running agents without deciding, and record on runs that their calls were undone."""

from dataclasses import dataclass

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.inquiring import write_note
from sayso.core.transitions.second_look import Undone, note_undone
from sayso.errors import Conflict
from service.core.desk.changes import Changes, build_idempotency
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Noting:
    """Notes to the agents of runs."""

    changes: Changes
    runs: Runs

    async def write_note(self, run_id: str, text: str, by: Actor, key: str | None = None) -> Saved:
        """Save a note on the run's latest suspension; a repeated `key` of the same person writes once.

        Raises what the transition raises, `NotFound`, and `Conflict` when the run has ended.
        """
        note_id, seen = new_id("note"), build_idempotency(by.id, key, ["note", run_id, text], run_id)

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if record.following_id is not None or record.end is not None:
                return Change(record)  # the run has ended or reached its next suspension, and is read again
            return write_note(record, note_id, text, by, now_ms)

        while True:
            run = await self.runs.read(run_id)
            if run.status.ended:
                raise Conflict(f"The run has already ended: {run.status}. Its agent reads no note.", status=run.status)
            saved = await self.changes.change(run.suspension_id, transition, seen)
            if saved.repeated or any(note.id == note_id for note in saved.record.notes):
                return saved

    async def note_undone(self, undone: Undone) -> Saved:
        """Record on a run's latest suspension how the undo of one of its calls ended, once; raises `NotFound`."""
        run_id = undone.call.run_id
        seen = build_idempotency(undone.by.id, f"undone {undone.offer_id}", ["undone", run_id], run_id)

        def transition(record: SuspensionRecord, now_ms: int) -> Change:
            if record.following_id is not None:
                return Change(record)  # the run has reached its next suspension, and is read again
            return note_undone(record, undone, now_ms)

        while True:
            run = await self.runs.read(run_id)
            saved = await self.changes.change(run.suspension_id, transition, seen)
            if saved.ref is not None or saved.record.following_id is None:
                return saved
