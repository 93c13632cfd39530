"""A run's audit trail, limited to the size of a page."""

from sayso.core.records.events import TrailEntry
from service.store.runs.runs import Runs

_BATCH = 1000
MAX_ENTRIES = 5000


async def read_trail(runs: Runs, run_id: str) -> list[TrailEntry]:
    """Return the run's events in order, up to `MAX_ENTRIES`."""
    entries: list[TrailEntry] = []
    while len(entries) < MAX_ENTRIES:
        more = await runs.trail(run_id, after=len(entries), limit=_BATCH)
        entries += more
        if len(more) < _BATCH:
            break
    return entries
