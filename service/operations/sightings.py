"""Note that a reviewer opened what waits, where its fallback depends on it."""

import structlog

from sayso.errors import Conflict, NotFound, Unavailable
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.sightings import may_decide, needs_sight
from service.auth.credentials import Principal
from service.wiring import Wiring

_LOG = structlog.get_logger(__name__)


async def note_seen(
    parts: Wiring, record: SuspensionRecord, caller: Principal, channel: str, item_id: str | None = None
) -> SuspensionRecord:
    """Return the record after noting that the caller saw one of its items, or all of them.

    Nothing is written unless it matters, and once an item at most. What cannot be noted is not seen.
    """
    by = caller.actor(channel)
    for item in record.items if record.status is Status.PENDING else ():
        if item_id not in (None, item.item_id) or not needs_sight(record, item) or not may_decide(record, item, by):
            continue
        try:
            record = (await parts.desk.see(record.id, item.item_id, by)).record
        except (Conflict, NotFound, Unavailable) as error:
            _LOG.warning("sighting_not_noted", suspension=record.id, item=item.item_id, why=error.message)
    return record
