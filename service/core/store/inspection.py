"""Searches for unreadable records: a cheap sample for `/readyz`, a full pass for `sayso doctor`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sayso.core.clock import monotonic_ms
from service.core.store.runs.runs import Runs
from service.core.store.runs.trails import TrailEnd, Trails
from service.core.store.suspensions.reading import Readings, UnreadableRecord
from service.core.store.suspensions.saving import Suspensions
from service.core.store.suspensions.schedule import Schedule

_SAMPLE = 50
_SAMPLE_EVERY_MS = 5_000
_AT_ONCE = 50  # how many records are read at once; takes some milliseconds, and other requests run in between
_MOST = 5_000


@dataclass
class Inspections:
    """Unreadable records and damaged trails of one tenant."""

    suspensions: Suspensions
    runs: Runs
    trails: Trails
    schedule: Schedule
    readings: Readings
    sampled_at_ms: float = -_SAMPLE_EVERY_MS

    async def sample(self) -> list[UnreadableRecord]:
        """Return the unreadable records known to this process, after reading a sample every 5 s."""
        if monotonic_ms() - self.sampled_at_ms >= _SAMPLE_EVERY_MS:
            self.sampled_at_ms = monotonic_ms()
            await self._read(await self._list_ids(_SAMPLE))
        return self.readings.list_unreadable()

    async def look_through(self) -> tuple[int, list[UnreadableRecord]]:
        """Read all waiting records and the newest others; return their number and the unreadable ones."""
        ids = await self._list_ids(_MOST)
        await self._read(ids)
        return len(ids), self.readings.list_unreadable()

    async def look_through_trails(self) -> tuple[int, dict[str, str]]:
        """Check the newest trails; return their number and the fault of each run whose trail is damaged.

        It must end as its record says, every event must fit the chain, and no call may start without a decision.
        """
        run_ids = await self.runs.list_ids(_MOST)
        faults: dict[str, str] = {}
        for some in _divide(run_ids):
            ends: list[TrailEnd] = await self.trails.find_ends(some)
            faults |= {end.run_id: end.fault for end in ends if end.fault}
            for run_id in some:
                if run_id not in faults and (fault := await self.trails.find_fault(run_id)):
                    faults[run_id] = fault
        return len(run_ids), faults

    async def _list_ids(self, limit: int) -> list[str]:
        known = [record.suspension_id for record in self.readings.list_unreadable() if " " not in record.suspension_id]
        waiting = await self.runs.inbox(limit=limit)
        scheduled = (await self.schedule.everything())[:limit]
        decided = await self.runs.decided(limit=limit)
        latest = await self.runs.latest(limit)
        return list(dict.fromkeys([*known, *waiting, *scheduled, *decided, *latest]))

    async def _read(self, ids: Sequence[str]) -> None:
        for some in _divide(ids):
            await self.suspensions.read_page(some)


def _divide(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield [*ids[start : start + _AT_ONCE]]
