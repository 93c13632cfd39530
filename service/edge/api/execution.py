"""Routes for calls that their owner runs: redeem the permit, report the outcome."""

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field, JsonValue

from sayso.core.records.decisions import Report
from sayso.core.records.terms import LONGEST_WAIT_S, REPORT_WITHIN_S
from sayso.core.transitions.client_execution import key_of
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.permits import approved_args
from sayso.errors import InvalidInput
from sayso.wire.models import RequestBody, moment
from sayso.wire.suspensions import RedeemedItem, SuspensionView
from service.edge.api.dependencies import Caller, IdempotencyKey, ItemId, Parts, SuspensionId, find_suspension
from service.edge.api.routes import SignedInRoute
from service.edge.api.suspensions import view_suspension
from service.edge.http.openapi import WRITES

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)


class RedeemRequest(RequestBody):
    """The time in which you report the outcome."""

    report_within_s: int = Field(default=REPORT_WITHIN_S, strict=True, ge=1, le=LONGEST_WAIT_S)


class OutcomeRequest(RequestBody):
    """The outcome of a call that you ran."""

    success: bool = Field(strict=True)
    output: JsonValue = Field(default=None, description="The result of the call.")
    error: str | None = Field(default=None, max_length=4000, description="Why the call failed.")


@router.post("/{suspension_id}/items/{item_id}/redeem", operation_id="redeemItem", responses=WRITES)
async def redeem_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[RedeemRequest | None, Body()] = None,
) -> RedeemedItem:
    """Redeem the permit of a call once, before the call starts. Only for suspensions with `mode: poll`.

    The Idempotency-Key is required and names the process that runs the call: choose a new key for every process. The
    same key gets the same answer again; any other key gets 409 `/problems/already-redeemed`.
    """
    await find_suspension(parts, caller.name, suspension_id)
    holder = _require(key)
    revocations = await parts.revocation_cache.find()
    within_s = (body or RedeemRequest()).report_within_s
    saved = await parts.desk.client_redeem(suspension_id, item_id, holder, revocations, within_s)
    item = find_item(saved.record, item_id)
    permit = item.permit
    assert permit is not None  # noqa: S101  client_redeem() has set it
    return RedeemedItem(
        suspension_id=suspension_id,
        item_id=item_id,
        tool=item.tool.name,
        args=approved_args(item),
        idempotency_key=key_of(saved.record, item),
        attempt=permit.attempt,
        redeemed_at=moment(permit.redeemed_at_ms),
        report_by=moment(permit.report_by_ms),
    )


@router.post("/{suspension_id}/items/{item_id}/outcome", operation_id="reportOutcome", responses=WRITES)
async def report_outcome(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: OutcomeRequest,
    caller: Caller,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Report the outcome of a call with the Idempotency-Key of its redemption. The run ends with its last outcome."""
    await find_suspension(parts, caller.name, suspension_id)
    report = Report(success=body.success, output=body.output, error=body.error, at_ms=0)
    saved = await parts.desk.conclude(suspension_id, item_id, _require(key), report)
    return view_suspension(saved.record, await parts.freezes.in_force(), caller.owner)


@router.post("/{suspension_id}/items/{item_id}/in-doubt", operation_id="markInDoubt", responses=WRITES)
async def mark_item_in_doubt(
    suspension_id: SuspensionId, item_id: ItemId, caller: Caller, parts: Parts
) -> SuspensionView:
    """Ask people about a redeemed call whose result is unknown.

    Returns the suspension with the new item. Repeating the request returns its current state.
    """
    await find_suspension(parts, caller.name, suspension_id)
    saved = await parts.desk.mark_in_doubt(suspension_id, item_id)
    return view_suspension(saved.following or saved.record, await parts.freezes.in_force(), caller.owner)


def _require(key: str | None) -> str:
    if key is None:
        raise InvalidInput("The Idempotency-Key is missing. It names the process that runs the call: send one.")
    return key
