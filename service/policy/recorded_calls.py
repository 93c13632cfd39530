"""The last recorded calls of all runs, read for judging them again."""

import asyncio
import json

from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.whatif.replays import RecordedCall, list_calls, list_suspended
from service.store.runs.runs import Runs
from service.store.suspensions.lookups import SuspensionLookups

MOST_CALLS = 1_000
MOST_RUNS = 1_000
MOST_BYTES = 8 * 1024 * 1024
"""The limit of all arguments together: they are sent to the process that judges."""

_AT_ONCE = 50
_EVENTS = 5_000


async def read_recorded(runs: Runs, suspensions: SuspensionLookups, most: int = MOST_CALLS) -> list[RecordedCall]:
    """Return up to `most` recorded calls of the newest runs, the latest call of each run first."""
    latest = await runs.latest(MOST_RUNS)
    recorded: list[RecordedCall] = []
    room = MOST_BYTES
    for begin in range(0, len(latest), _AT_ONCE):
        records = await suspensions.read_many(latest[begin : begin + _AT_ONCE])
        pages = await asyncio.gather(*(_read_run(runs, suspensions, record) for record in records))
        for call in (call for calls in pages for call in calls):
            room -= len(json.dumps(call.event.tool_args))
            if len(recorded) == most or room < 0:
                return recorded
            recorded.append(call)
    return recorded


async def _read_run(runs: Runs, suspensions: SuspensionLookups, record: SuspensionRecord) -> list[RecordedCall]:
    trail = await runs.trail(record.run.id, limit=_EVENTS)
    records = {record.id: record}
    earlier = [suspension_id for suspension_id in list_suspended(trail) if suspension_id not in records]
    records |= {other.id: other for other in await suspensions.read_many(earlier)}
    return list_calls(record.run, trail, records)
