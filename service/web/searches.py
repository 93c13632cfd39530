"""Search by ID: the page of a run or suspension."""

from fastapi import Request

from sayso.errors import NotFound
from service.store.suspensions.reading import UnreadableRecord, describe_unreadable
from service.web.content.cards import item_href
from service.web.sessions import wiring_of

_IDS = ("run_", "sus_")


async def find_place(request: Request, wanted: str) -> str | None:
    """Return the path of the run or suspension with this ID; None if there is none, or if this is no ID."""
    wanted = wanted.strip()
    if not wanted.startswith(_IDS):
        return None
    wiring = wiring_of(request)
    try:
        return f"/runs/{(await wiring.runs.read(wanted)).id}"
    except NotFound:
        records = await wiring.desk.suspensions.read_page([wanted])
    if not records:
        return None
    record = records[0]
    if isinstance(record, UnreadableRecord):
        raise describe_unreadable(record)
    return item_href(record, record.items[0]) if record.items else f"/runs/{record.run.id}"
