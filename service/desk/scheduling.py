"""Look at suspensions because their time has come, one or many at once, or precompute what their next moment will bring.

These verbs are the desk's own (`service/desk/desk.py`), for the clock and for whoever meets a moment that has passed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.records.freezes import Freeze
from sayso.records.suspensions import Change, SuspensionRecord
from sayso.transitions.due import tick, wake
from sayso.transitions.freezing import doubt_time
from service.desk.client_execution import ClientExecution
from service.store.suspensions.batches import Foreseen, Verb
from service.store.suspensions.saving import Saved


@dataclass(frozen=True)
class Precomputed:
    """What suspensions come to at their next moments, as long as `freezes` are what is frozen."""

    freezes: tuple[Freeze, ...]
    foreseen: tuple[Foreseen, ...]


class Scheduling(ClientExecution):
    """What time calls for."""

    async def look(self, suspension_id: str, queued_since_ms: int | None = None) -> Saved:
        """Do what the suspension's own times call for now: its fallback, or putting it before a worker again.

        What is frozen is left as it is and looked at again in a while; what was gets its time back. What has been in
        line for a worker since `queued_since_ms` or later is not put there twice.
        """
        return await self.suspensions.change(suspension_id, await self._ticking(queued_since_ms))

    async def tick_batch(self, suspension_ids: Sequence[str], queued_since_ms: int | None = None) -> list[str]:
        """Look at many in one round; return those that must be looked at by themselves."""
        verb = await self._ticking(queued_since_ms)
        return await self.suspensions.due_batches.change(suspension_ids, verb)

    async def precompute(self, suspension_ids: Sequence[str], until_ms: int) -> Precomputed:
        """Find out what a look at each will do at its next moment, and save nothing."""
        known = await self._freezes(False)
        found = await self.suspensions.due_batches.precompute(
            suspension_ids, lambda record, at_ms: tick(record, known, at_ms), until_ms
        )
        return Precomputed(known, found)

    async def fulfil(self, precomputed: Precomputed, now_ms: int) -> list[str]:
        """Do what was foreseen for moments that have come; return those that must be looked at after all.

        That is all of them when anything was frozen or lifted meanwhile, or the time is in doubt.
        """
        known = await self._freezes(False)
        if doubt_time(known, self.suspensions.mark_ms(), now_ms) != precomputed.freezes:
            return [one.suspension_id for one in precomputed.foreseen]
        return await self.suspensions.due_batches.fulfil(precomputed.foreseen)

    async def wake(self, suspension_id: str, freeze: Freeze) -> Saved:
        """Let a suspension go on at once that `freeze` held before it was lifted: its time begins again, or its run."""
        freezes = await self._freezes(False)

        return await self.suspensions.change(
            suspension_id, lambda record, now_ms: wake(record, freeze, freezes, now_ms)
        )

    async def _ticking(self, queued_since_ms: int | None) -> Verb:
        known = await self._freezes(False)

        def verb(record: SuspensionRecord, now_ms: int) -> Change:
            freezes = doubt_time(known, self.suspensions.mark_ms(), now_ms)
            return tick(record, freezes, now_ms, queued_since_ms)

        return verb
