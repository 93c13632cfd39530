"""Routes of claims, and of questions to requesters with their answers."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from sayso.core.records.items import LONGEST_TEXT, find_open_inquiry
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.wire.models import RequestBody
from sayso.wire.suspensions import InquiryPage, OpenInquiry, SuspensionView
from service.edge.api.dependencies import (
    Caller,
    IdempotencyKey,
    ItemId,
    Parts,
    Person,
    SuspensionId,
    Wait,
    find_suspension,
)
from service.edge.api.routes import SignedInRoute, wait_for
from service.edge.api.suspensions import view_suspension
from service.edge.http.openapi import WAITS, WRITES

router = APIRouter(prefix="/suspensions/{suspension_id}", tags=["inquiries"], route_class=SignedInRoute)

InquiryId = Annotated[str, Path(min_length=1, max_length=100, examples=["inq_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class InquiryRequest(RequestBody):
    """A question to the requester, or its answer."""

    text: str = Field(min_length=1, max_length=LONGEST_TEXT, examples=["Which order is this about?"])


@router.post("/items/{item_id}/claim", operation_id="claimItem", responses=WRITES)
async def claim_item(suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts) -> SuspensionView:
    """Tell the other reviewers for 15 minutes that you handle the item, or renew it. They may still decide."""
    saved = await parts.desk.claim(suspension_id, item_id, caller.reviewer("api"))
    return view_suspension(saved.record, await parts.freezes.in_force())


@router.delete("/items/{item_id}/claim", operation_id="releaseItem", responses=WRITES)
async def release_item(suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts) -> SuspensionView:
    """Release your claim."""
    saved = await parts.desk.release_claim(suspension_id, item_id, caller.reviewer("api"))
    return view_suspension(saved.record, await parts.freezes.in_force())


@router.post("/items/{item_id}/inquiries", operation_id="askRequester", responses=WRITES)
async def ask_requester(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: InquiryRequest,
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Put a question to the requester. One question at a time waits for its answer."""
    saved = await parts.desk.ask_requester(suspension_id, item_id, body.text, caller.reviewer("api"), key)
    return view_suspension(saved.record, await parts.freezes.in_force())


@router.post("/items/{item_id}/inquiries/{inquiry_id}/answer", operation_id="answerInquiry", responses=WRITES)
async def answer_inquiry(
    suspension_id: SuspensionId,
    item_id: ItemId,
    inquiry_id: InquiryId,
    body: InquiryRequest,
    caller: Caller,
    parts: Parts,
) -> SuspensionView:
    """Answer a reviewer's question, as the owner of the run. The answer stands on the item as your claim."""
    await find_suspension(parts, caller.owner, suspension_id)
    saved = await parts.desk.answer_inquiry(suspension_id, item_id, inquiry_id, body.text, caller.actor("api"))
    return view_suspension(saved.record, await parts.freezes.in_force(), caller.owner)


@router.get("/inquiries", operation_id="listInquiries", responses=WAITS)
async def list_inquiries(
    request: Request, suspension_id: SuspensionId, caller: Caller, parts: Parts, wait: Wait
) -> InquiryPage:
    """Return the questions that wait for the requester. `wait` delays the answer until there is one."""

    async def read() -> SuspensionRecord:
        return (await find_suspension(parts, caller.owner, suspension_id))[0]

    record = await wait_for(
        request,
        suspension_id,
        read,
        who=caller.name,
        done=lambda record: record.status is not Status.PENDING or bool(_list_open(record)),
        wait_s=wait,
    )
    return InquiryPage(status=record.status, inquiries=_list_open(record) if record.status is Status.PENDING else [])


def _list_open(record: SuspensionRecord) -> list[OpenInquiry]:
    waiting = [(item.item_id, find_open_inquiry(item.inquiries)) for item in record.items if item.open]
    return [
        OpenInquiry.model_validate({**dict(inquiry), "item_id": item_id})
        for item_id, inquiry in waiting
        if inquiry is not None
    ]
