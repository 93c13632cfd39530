"""Read a run's trail for a page: as much of it as a page can bear."""

from sayso.records.events import TrailEntry
from service.store.runs.runs import Runs

_AT_ONCE = 1000
MOST_ENTRIES = 5000
"""A page shows no more events than this; the API has them all."""


async def read_trail(runs: Runs, run_id: str) -> list[TrailEntry]:
    """Return the run's events in order, up to `MOST_ENTRIES`."""
    entries: list[TrailEntry] = []
    while len(entries) < MOST_ENTRIES:
        more = await runs.trail(run_id, after=len(entries), limit=_AT_ONCE)
        entries += more
        if len(more) < _AT_ONCE:
            break
    return entries
