"""Let whoever asked for calls run them: spend the leave of one before it starts, say afterwards what came of it."""

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput, NotFound, Unreadable
from sayso.records.decisions import Report
from sayso.records.suspensions import SuspensionRecord
from sayso.records.terms import LONGEST_WAIT_S, REPORT_WITHIN_S
from sayso.transitions.client_execution import key_of
from sayso.transitions.deciding import find_item
from sayso.transitions.execution import approved_args
from service.api.routing.dependencies import Caller, IdempotencyKey, ItemId, Parts, SuspensionId
from service.api.routing.routes import SignedInRoute
from service.api.views.base import Timestamp
from service.api.views.suspensions import SuspensionView
from service.auth.credentials import Principal
from service.http.openapi import WRITES
from service.wiring import Wiring

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RedeemRequest(_Request):
    """How long you have to say what came of the call."""

    report_within_s: int = Field(default=REPORT_WITHIN_S, strict=True, ge=1, le=LONGEST_WAIT_S)


class OutcomeRequest(_Request):
    """What came of a call that you ran."""

    success: bool = Field(strict=True)
    output: JsonValue = Field(default=None, description="Its result, for the record and for whoever asks again.")
    error: str | None = Field(default=None, max_length=4000, description="Why it failed.")


class RedeemedItem(BaseModel):
    """Leave that was spent: run exactly this, now, and say what came of it."""

    suspension_id: str
    item_id: str
    tool: str
    args: JsonObject = Field(description="What was decided on: as asked, as edited, or with the value that was given.")
    idempotency_key: str = Field(description="Pass it on to whatever the call changes; it is the same for every try.")
    attempt: int
    consumed_at: Timestamp
    report_by: Timestamp


@router.post("/{suspension_id}/items/{item_id}/redeem", operation_id="redeemItem", responses=WRITES)
async def redeem_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[RedeemRequest | None, Body()] = None,
) -> RedeemedItem:
    """Spend the leave to run a call, once, before it starts; for suspensions that were asked with `mode: poll`.

    The Idempotency-Key is needed, and names whoever runs the call: choose a new one for every process that tries. The
    same key again gets the same answer, any other 409 `/problems/already-redeemed`.
    """
    await _check_own(parts, caller, suspension_id)
    holder = _need(key)
    revocations = await parts.revocation_cache.find()
    within_s = (body or RedeemRequest()).report_within_s
    saved = await parts.desk.client_redeem(suspension_id, item_id, holder, revocations, within_s)
    return _describe_redeemed(saved.record, item_id)


@router.post("/{suspension_id}/items/{item_id}/outcome", operation_id="reportOutcome", responses=WRITES)
async def report_outcome(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: OutcomeRequest,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Say what came of a call, with the Idempotency-Key that consumed its leave. The run ends with the last of them."""
    await _check_own(parts, caller, suspension_id)
    told = Report(success=body.success, output=body.output, error=body.error, at_ms=0)
    saved = await parts.desk.conclude(suspension_id, item_id, _need(key), told)
    return SuspensionView.of(saved.record)


@router.post("/{suspension_id}/items/{item_id}/in-doubt", operation_id="markInDoubt", responses=WRITES)
async def mark_item_in_doubt(
    suspension_id: SuspensionId, item_id: ItemId, caller: Caller, parts: Parts
) -> SuspensionView:
    """Ask people about a call whose leave was spent and of which nobody knows whether it ran.

    Returns the suspension that asks them; asked already, it is returned as it stands.
    """
    await _check_own(parts, caller, suspension_id)
    saved = await parts.desk.mark_in_doubt(suspension_id, item_id)
    return SuspensionView.of(saved.following or saved.record)


def _need(key: str | None) -> str:
    if key is None:
        raise InvalidInput("This takes an Idempotency-Key: it names whoever runs the call. Choose one and send it.")
    return key


async def _check_own(parts: Wiring, caller: Principal, suspension_id: str) -> None:
    """Raise `NotFound`, in the same words as for a missing one, unless the caller asked for it.

    Not even a reviewer runs what is another one's.
    """
    unknown = NotFound(f"There is no suspension {suspension_id!r} for this credential.")
    try:
        record = (await parts.desk.suspensions.read(suspension_id)).record
    except Unreadable:
        if await parts.runs.is_of(caller.name, suspension_id=suspension_id):
            raise
        raise unknown from None
    if record.run.owner != caller.name:
        raise unknown


def _describe_redeemed(record: SuspensionRecord, item_id: str) -> RedeemedItem:
    item = find_item(record, item_id)
    permit = item.permit
    assert permit is not None  # noqa: S101  client_redeem() has just put it there, or found it
    return RedeemedItem(
        suspension_id=record.id,
        item_id=item_id,
        tool=item.tool.name,
        args=approved_args(item),
        idempotency_key=key_of(record, item),
        attempt=permit.attempt,
        consumed_at=permit.redeemed_at_ms,
        report_by=permit.report_by_ms,
    )
