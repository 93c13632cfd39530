"""Compare the store's clock with this machine's uptime, and freeze time where the store's ran away.

A jump of over five minutes holds what would expire by it and is told on every page, until an admin says whether the
clock is right, or it goes back to where it was.
"""

import structlog

from sayso.clock import boot_id, now_ms, uptime_ms
from sayso.records.freezes import TIME
from sayso.transitions.clock_jumps import JUMP_MS, Beat, find_drift_ms
from service.wiring import Wiring

_KEPT_EVERY_MS = 1000

log = structlog.get_logger()


class Beats:
    """The beats of one clock. The first is measured against the last one that any clock has kept."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._boot = boot_id()
        self._last: Beat | None = None
        self._kept_at_ms = 0

    async def beat(self) -> int:
        """Return the store's time, once it is known whether it can be believed."""
        uptime = uptime_ms()
        at_ms = await self._wiring.schedule.now_ms()
        await self.note(Beat(at_ms=at_ms, uptime_ms=uptime, boot=self._boot, wall_ms=now_ms()))
        return at_ms

    async def note(self, beat: Beat) -> None:
        """Take a reading: freeze time or lift that where the store's clock jumped, and keep the beat once a second."""
        freezes = self._wiring.freezes
        last = self._last or await freezes.last_beat()
        drift_ms = find_drift_ms(last, beat) if last is not None else 0
        if last is not None and drift_ms > JUMP_MS:
            await self._doubt(last, beat, drift_ms)
        elif drift_ms < -JUMP_MS:
            await self._notice_return(beat, -drift_ms)
        if self._last is None or abs(drift_ms) > JUMP_MS or beat.uptime_ms - self._kept_at_ms >= _KEPT_EVERY_MS:
            await freezes.keep_beat(beat, went_back=drift_ms < -JUMP_MS)
            self._kept_at_ms = beat.uptime_ms
        self._last = beat

    async def _doubt(self, last: Beat, beat: Beat, drift_ms: int) -> None:
        """Freeze time, unless another clock has told of the same jump."""
        known = await self._wiring.freezes.known(fresh=True)
        jumps = [(one.at_ms, one.jumped_to_ms or 0) for one in known if one.scope == TIME]
        told_ms = sum(to_ms - from_ms for from_ms, to_ms in jumps if last.at_ms < to_ms <= beat.at_ms)
        if drift_ms - told_ms <= JUMP_MS:
            return
        freeze = await self._wiring.freezes.doubt_time(last.at_ms, beat.at_ms)
        log.error("store_clock_jumped", by_ms=drift_ms, freeze=freeze.id, told=freeze.reason)

    async def _notice_return(self, beat: Beat, back_ms: int) -> None:
        await self._wiring.deliveries.follow_back(back_ms, beat.at_ms)
        unfrozen = await self._wiring.freezes.notice_return(back_ms, beat.at_ms)
        log.error("store_clock_went_back", by_ms=back_ms, unfrozen=unfrozen.id if unfrozen else None)
