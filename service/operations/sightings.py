"""Record that a reviewer opened an item whose fallback depends on it."""

import structlog

from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.decision_checks import may_decide
from sayso.core.transitions.sightings import mark_seen, needs_sight
from sayso.errors import Conflict, NotFound, Unavailable
from service.auth.credentials import Principal
from service.wiring import Wiring

_LOG = structlog.get_logger(__name__)


async def note_seen(
    parts: Wiring, record: SuspensionRecord, caller: Principal, channel: str, item_id: str | None = None
) -> SuspensionRecord:
    """Record that the caller saw one item, or all of them; return the current record.

    Writes only where the fallback or a delivery depends on it, at most once an item and person. An item that
    cannot be recorded is logged.
    """
    by = caller.reviewer(channel)
    for item in record.items if record.status is Status.PENDING else ():
        if item_id not in (None, item.item_id) or not may_decide(record, item, by):
            continue
        if not needs_sight(record, item) and mark_seen(item, by, 0) is item:
            continue
        try:
            record = (await parts.desk.see(record.id, item.item_id, by)).record
        except (Conflict, NotFound, Unavailable) as error:
            _LOG.warning("sighting_not_noted", suspension=record.id, item=item.item_id, why=error.message)
    return record
