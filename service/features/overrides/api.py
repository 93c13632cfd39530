"""The route of overrides: what people changed or denied on a day, as JSON lines for evaluations."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from sayso.errors import InvalidInput
from service.edge.api.dependencies import Caller, Parts
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.overrides.exporting import export_overrides

router = APIRouter(prefix="/overrides", tags=["reports"], route_class=SignedInRoute)

MEDIA_TYPE = "application/jsonl"
Day = Annotated[str, Query(max_length=10, description="A day in UTC, such as 2026-10-31; empty for today.")]


@router.get(
    "",
    operation_id="exportOverrides",
    response_class=StreamingResponse,
    responses={**problems(400, 401, 403, 429), 200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def send_overrides(caller: Caller, parts: Parts, day: Day = "") -> StreamingResponse:
    """Send a JSON line for each call that people edited or denied, of suspensions that were decided on a day.

    Each has the call, the difference as a JSON Patch (RFC 6902), and the reason, with secrets masked. Agents see those
    of their own runs, as often as they may ask for approval. Drills and erased items are left out, and archived runs
    come last.
    """
    begin_ms, end_ms = _read_day(day) if day else _find_day(await parts.schedule.now_ms())
    if caller.owner is not None:
        await parts.intake.admit(caller.owner)
    return StreamingResponse(
        export_overrides(parts, begin_ms, end_ms, caller.owner),
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store"},
    )


def _find_day(now_ms: int) -> tuple[int, int]:
    return _read_day(datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat())


def _read_day(day: str) -> tuple[int, int]:
    """Return the begin and the end of a day in UTC, ms; raises `InvalidInput`."""
    try:
        begin = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        end = begin + timedelta(days=1)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{day!r} is not a day. Give one such as 2026-10-31.", parameter="day") from None
    return round(begin.timestamp() * 1000), round(end.timestamp() * 1000)
