"""Detection of jumps of the store's clock, by comparing it with this machine's uptime.

A jump of over five minutes freezes time until an admin confirms the clock or it goes back.
"""

import structlog

from sayso.core.clock import boot_id, now_ms, uptime_ms
from sayso.core.records.clock_readings import JUMP_MS, ClockReading, find_drift_ms
from sayso.core.records.freezes import TIME
from service.core.store.channels import CardQueue
from service.core.store.deliveries import Deliveries
from service.core.wiring import Wiring
from service.features.webhooks.store import AnnouncementQueue

_KEPT_EVERY_MS = 1000

log = structlog.get_logger()


class JumpDetector:
    """Readings of the store's clock. The first is compared with the last reading that any clock saved."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._boot = boot_id()
        self._last: ClockReading | None = None
        self._kept_at_ms = 0

    async def read_now_ms(self) -> int:
        uptime = uptime_ms()
        at_ms = await self._wiring.schedule.now_ms()
        await self.note(ClockReading(at_ms=at_ms, uptime_ms=uptime, boot=self._boot, wall_ms=now_ms()))
        return at_ms

    async def note(self, reading: ClockReading) -> None:
        """Freeze or unfreeze time if the store's clock jumped since the last reading; save a reading once a second."""
        freezes = self._wiring.freezes
        last = self._last or await freezes.last_reading()
        drift_ms = find_drift_ms(last, reading) if last is not None else 0
        if last is not None and drift_ms > JUMP_MS:
            await self._doubt(last, reading, drift_ms)
        elif drift_ms < -JUMP_MS:
            await self._notice_return(reading, -drift_ms)
        if self._last is None or abs(drift_ms) > JUMP_MS or reading.uptime_ms - self._kept_at_ms >= _KEPT_EVERY_MS:
            await freezes.save_reading(reading, went_back=drift_ms < -JUMP_MS)
            self._kept_at_ms = reading.uptime_ms
        self._last = reading

    async def _doubt(self, last: ClockReading, reading: ClockReading, drift_ms: int) -> None:
        """Freeze time, unless another clock has reported the same jump."""
        known = await self._wiring.freezes.known(fresh=True)
        jumps = [(freeze.at_ms, freeze.jumped_to_ms or 0) for freeze in known if freeze.scope == TIME]
        reported_ms = sum(to_ms - from_ms for from_ms, to_ms in jumps if last.at_ms < to_ms <= reading.at_ms)
        if drift_ms - reported_ms <= JUMP_MS:
            return
        freeze = await self._wiring.freezes.doubt_time(last.at_ms, reading.at_ms)
        log.error("store_clock_jumped", by_ms=drift_ms, freeze=freeze.id, reason=freeze.reason)

    async def _notice_return(self, reading: ClockReading, back_ms: int) -> None:
        await self._wiring.part(Deliveries).follow_back(back_ms, reading.at_ms)
        await self._wiring.part(AnnouncementQueue).bring_forward(reading.at_ms)
        await self._wiring.part(CardQueue).bring_forward(reading.at_ms)
        unfrozen = await self._wiring.freezes.notice_return(back_ms, reading.at_ms)
        log.error("store_clock_went_back", by_ms=back_ms, unfrozen=unfrozen.id if unfrozen else None)
