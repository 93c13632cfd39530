"""Read what waits for people, and decide it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Request
from fastapi.openapi.models import Example
from pydantic import BaseModel, ConfigDict, Field

from sayso.errors import NotFound, Unreadable
from sayso.records.decisions import ActorKind, DecisionRequest
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.deciding import find_item
from service.api.routing.dependencies import (
    Caller,
    IdempotencyKey,
    ItemId,
    Limit,
    Parts,
    Person,
    Skip,
    SuspensionId,
    Wait,
)
from service.api.routing.quick_routes import QuickRoute
from service.api.routing.routes import SignedInRoute
from service.api.routing.waits import wait_for
from service.api.views.base import SentTimestamp
from service.api.views.items import DecisionView, OutcomeView
from service.api.views.runs import UnreadableView
from service.api.views.suspensions import SuspensionView
from service.auth.credentials import Principal
from service.http.openapi import WAITS, WRITES, problems
from service.operations.sightings import note_seen
from service.store.suspensions.reading import UnreadableRecord
from service.wiring import Wiring

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)
decisions = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=QuickRoute)

_PAGE = 100
_READ_THROUGH = 500
"""How long an inbox may be to be read through for what is one agent's own."""
_DIGEST = "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184"
_EXAMPLES: dict[str, Example] = {
    "approve": {"value": {"action": "approve", "digest": _DIGEST}},
    "approve with other arguments": {
        "value": {"action": "approve", "digest": _DIGEST, "args": {"order": "A-1", "amount": 100}}
    },
    "deny": {"value": {"action": "deny", "digest": _DIGEST, "message": "The order was never delivered."}},
    "give the value": {"value": {"action": "value", "digest": _DIGEST, "value": "2026-12-24"}},
}


class SuspensionPage(BaseModel):
    """Suspensions: pending ones by their deadline, decided ones the latest first."""

    suspensions: list[SuspensionView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    unreadable: list[UnreadableView] = Field(description="Suspensions of this page that cannot be read or decided.")


class ExtendRequest(BaseModel):
    """Until when reviewers are to have time."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"until": "2026-11-21T18:00:00Z"}]}
    )

    until: SentTimestamp = Field(description="A moment in RFC 3339.")


class DecidedItem(BaseModel):
    """What became of an item and of its suspension."""

    suspension_id: str
    item_id: str
    status: Status = Field(description="The suspension's status: pending while other items or votes are missing.")
    outcome: OutcomeView | None = Field(description="Null while the quorum is not met.")
    decision: DecisionView | None = Field(description="Your word as it was recorded.")


@router.get("", operation_id="listSuspensions", responses=problems(401))
async def list_suspensions(
    caller: Caller, parts: Parts, status: Literal["pending", "decided"] = "pending", skip: Skip = 0, limit: Limit = 50
) -> SuspensionPage:
    """List what waits, the earliest deadline first, or what was decided, the latest first; an agent sees its own."""
    found = await _page(parts, caller, status, skip, limit + 1)
    more = len(found) > limit
    views = [SuspensionView.of(record) for record in found[:limit] if isinstance(record, SuspensionRecord)]
    return SuspensionPage(
        suspensions=views,
        next_skip=skip + limit if more else None,
        unreadable=UnreadableView.list_of(found[:limit]),
    )


@router.get("/{suspension_id}", operation_id="getSuspension", responses=WAITS)
async def get_suspension(
    request: Request, suspension_id: SuspensionId, caller: Caller, parts: Parts, wait: Wait
) -> SuspensionView:
    """Return a suspension; with `wait`, as soon as it no longer waits, or as it stands when the time is over.

    Asked for by somebody who may decide it, what is asked counts as seen.
    """

    async def read() -> SuspensionRecord:
        return await _find(parts, caller, suspension_id)

    if caller.kind is ActorKind.HUMAN:
        await note_seen(parts, await read(), caller, "api")
    found = await wait_for(
        request,
        suspension_id,
        read,
        who=caller.name,
        done=lambda record: record.status is not Status.PENDING,
        wait_s=wait,
    )
    return SuspensionView.of(found)


@decisions.post("/{suspension_id}/items/{item_id}/decision", operation_id="decideItem", responses=WRITES)
async def decide_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: Annotated[DecisionRequest, Body(openapi_examples=_EXAMPLES)],
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> DecidedItem:
    """Approve, approve with edited arguments, deny, or give the value. Whoever comes second is told who was first."""
    saved = await parts.desk.decide(suspension_id, item_id, body, caller.actor("api"), key=key)
    item = find_item(saved.record, item_id)
    own = [DecisionView.of(one) for one in item.decisions if one.by.id == caller.name]
    outcome = OutcomeView.model_validate(item.outcome) if item.outcome is not None else None
    return DecidedItem(
        suspension_id=suspension_id,
        item_id=item_id,
        status=saved.record.status,
        outcome=outcome,
        decision=own[-1] if own else None,
    )


@router.post("/{suspension_id}/items/{item_id}/extend", operation_id="extendItem", responses=WRITES)
async def extend_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: ExtendRequest,
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Put the deadline off, as far as the item's terms allow; the digest of what is asked changes with it."""
    until_ms = int(body.until.timestamp() * 1000)
    saved = await parts.desk.extend(suspension_id, item_id, until_ms, caller.actor("api"), key)
    return SuspensionView.of(saved.record)


async def _find(parts: Wiring, caller: Principal, suspension_id: str) -> SuspensionRecord:
    """Return the suspension if this caller may see it; raises `NotFound` in the same words where it may not.

    Raises `Unreadable` where it is this caller's to see and cannot be read.
    """
    unknown = NotFound(f"There is no suspension {suspension_id!r} for this credential.")
    try:
        record = (await parts.desk.suspensions.read(suspension_id)).record
    except Unreadable:
        owner = caller.owner
        if owner is None or await parts.runs.is_of(owner, suspension_id=suspension_id):
            raise
        raise unknown from None
    if caller.owner is not None and record.run.owner != caller.owner:
        raise unknown
    return record


async def _page(
    parts: Wiring, caller: Principal, status: str, skip: int, limit: int
) -> list[SuspensionRecord | UnreadableRecord]:
    """Read through the list until the page is full: no index knows whose a suspension is.

    In a long inbox most may be others'; then the caller's own runs tell. Nobody can tell whose an unreadable one is,
    so an agent is shown its own only where the index of its runs names it.
    """
    look_up = parts.runs.inbox if status == "pending" else parts.runs.decided
    if caller.owner is None:
        return await parts.desk.suspensions.read_page(await look_up(skip, limit))
    if status == "pending" and await parts.runs.count_pending() > _READ_THROUGH:
        ids = await parts.runs.waiting_of(caller.owner)
        return await parts.desk.suspensions.read_page(ids[skip : skip + limit])
    own: list[SuspensionRecord | UnreadableRecord] = []
    at = 0
    while len(own) < skip + limit:
        ids = await look_up(at, _PAGE)
        records = await parts.desk.suspensions.read_many(ids)
        own += [record for record in records if record.run.owner == caller.owner]
        at += _PAGE
        if len(ids) < _PAGE:
            break
    return own[skip : skip + limit]
