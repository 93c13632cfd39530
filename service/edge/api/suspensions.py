"""Routes of suspensions: list, read, decide and extend; claims, and questions to requesters with their answers."""

from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Request
from fastapi.openapi.models import Example
from pydantic import ConfigDict, Field

from sayso.core.policy.budgets import measure
from sayso.core.records.decisions import ActorKind, ConfirmRequest, DecisionRequest
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import LONGEST_TEXT, Item, find_open_inquiry
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.deciding import find_item, list_made
from sayso.core.transitions.deliveries import is_live
from sayso.core.transitions.inquiring import digest_version
from sayso.core.transitions.quorum import find_args, needs_confirmation
from sayso.wire.items import DecisionView, EarlierDenialView, OutcomeView, ToConfirmView
from sayso.wire.models import RequestBody, SentTimestamp, moment
from sayso.wire.suspensions import (
    DecidedItem,
    InquiryPage,
    OpenInquiry,
    SuspensionPage,
    SuspensionView,
    UnreadableView,
    show_suspension,
)
from service.core.auth.credentials import Principal
from service.core.operations.masking import mask_typed, note_seen
from service.core.store.precedents import Precedents
from service.core.store.suspensions.reading import UnreadableRecord
from service.core.wiring import Wiring
from service.edge.api.dependencies import (
    Caller,
    IdempotencyKey,
    ItemId,
    Limit,
    Parts,
    Person,
    Skip,
    SuspensionId,
    Wait,
    find_suspension,
)
from service.edge.api.routes import SignedInRoute, wait_for
from service.edge.http.openapi import WAITS, WRITES, problems

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)
decisions = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)

_PAGE = 100
_PAGE_CHARS = 4_000_000  # so much is written in some milliseconds
_VALUE_CHARS = 20  # what one value takes beside its characters
_MAX_SCANNED = 500  # above this inbox size, an agent's suspensions are found by the index of its runs
_DIGEST = "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184"
_EXAMPLES: dict[str, Example] = {
    "approve": {"value": {"action": "approve", "digest": _DIGEST}},
    "approve with other arguments": {
        "value": {"action": "approve", "digest": _DIGEST, "args": {"order": "A-1", "amount": 100}}
    },
    "deny": {"value": {"action": "deny", "digest": _DIGEST, "message": "The order was never delivered."}},
    "give the value": {"value": {"action": "value", "digest": _DIGEST, "value": "2026-12-24"}},
}


_CONFIRMATIONS: dict[str, Example] = {
    "confirm": {"value": {"action": "confirm", "digest": _DIGEST}},
    "decline": {"value": {"action": "decline", "digest": _DIGEST, "message": "I did not ask for this."}},
}


class ExtendRequest(RequestBody):
    """The new deadline."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2026-11-21T18:00:00Z"}]})

    until: SentTimestamp = Field(description="A time in RFC 3339.")


@router.get("", operation_id="listSuspensions", responses=problems(401, 403))
async def list_suspensions(
    caller: Caller,
    parts: Parts,
    status: Literal["pending", "decided", "undoable"] = "pending",
    skip: Skip = 0,
    limit: Limit = 50,
) -> SuspensionPage:
    """List pending suspensions by deadline, or decided ones, the latest first. Agents see their own.

    `undoable` are those that offer to undo a call which ran under a veto, by deadline: approve one to undo its call.

    A page of very large calls has fewer than `limit`; `next_skip` leads to the others.
    """
    page = await _page(parts, caller, status, skip, limit + 1)
    listed, frozen = _cut_page(page[:limit]), await parts.freezes.in_force()
    views = [
        view_suspension(record, frozen, caller.owner)
        for record in listed
        if isinstance(record, SuspensionRecord) and not (caller.owner is not None and record.is_drill)
    ]
    return SuspensionPage(
        suspensions=views,
        next_skip=skip + len(listed) if len(page) > len(listed) else None,
        unreadable=view_unreadable(listed),
    )


@router.get("/{suspension_id}", operation_id="getSuspension", responses=WAITS)
async def get_suspension(
    request: Request, suspension_id: SuspensionId, caller: Caller, parts: Parts, wait: Wait
) -> SuspensionView:
    """Return a suspension. `wait` delays the answer until it is no longer pending or the time is over.

    If an eligible reviewer reads it, its items count as seen.
    """

    async def read() -> SuspensionRecord:
        return (await find_suspension(parts, caller.owner, suspension_id))[0]

    if caller.kind is ActorKind.HUMAN:
        seen = await note_seen(parts, await read(), caller, "api")
        if not wait:
            view = view_suspension(seen, await parts.freezes.in_force(), caller.owner)
            denials = [await parts.part(Precedents).find_denial(seen, item) for item in seen.items]
            items = (
                item
                if denial is None
                else item.model_copy(update={"denied_before": EarlierDenialView.model_validate(denial)})
                for item, denial in zip(view.items, denials, strict=True)
            )
            return view.model_copy(update={"items": tuple(items)})
    record = await wait_for(
        request,
        suspension_id,
        read,
        who=caller.name,
        done=lambda record: record.status is not Status.PENDING,
        wait_s=wait,
    )
    return view_suspension(record, await parts.freezes.in_force(), caller.owner)


@decisions.post("/{suspension_id}/items/{item_id}/confirmation", operation_id="confirmItem", responses=WRITES)
async def confirm_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: Annotated[ConfirmRequest, Body(openapi_examples=_CONFIRMATIONS)],
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Confirm the call that an agent makes for you, or decline it: an act apart from its approval.

    Only the acting user can, where the terms have `confirm_by`. It runs once it is approved, too.
    """
    by = caller.reviewer("api")
    record = (await parts.desk.confirm(suspension_id, item_id, body, by, key)).record
    return view_suspension(record, await parts.freezes.in_force())


@decisions.post("/{suspension_id}/items/{item_id}/decision", operation_id="decideItem", responses=WRITES)
async def decide_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: Annotated[DecisionRequest, Body(openapi_examples=_EXAMPLES)],
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> DecidedItem:
    """Approve, approve with edited arguments, deny, or give a value. The first decision to complete the quorum wins."""
    saved = await parts.desk.decide(suspension_id, item_id, body, caller.reviewer("api"), key=key)
    item = find_item(saved.record, item_id)
    own = [DecisionView.model_validate(each) for each in list_made(item) if each.by.id == caller.name]
    outcome = OutcomeView.model_validate(item.outcome) if item.outcome is not None else None
    return DecidedItem(
        suspension_id=suspension_id,
        item_id=item_id,
        status=saved.record.status,
        outcome=outcome,
        decision=own[-1] if own else None,
        undo_until=moment(item.undoable.until_ms) if item.undoable is not None else None,
    )


@decisions.delete("/{suspension_id}/items/{item_id}/decision", operation_id="retractDecision", responses=WRITES)
async def retract_decision(
    suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts
) -> SuspensionView:
    """Take back your decision while the quorum is short. You may decide anew; the trail keeps both."""
    saved = await parts.desk.retract(suspension_id, item_id, caller.reviewer("api"))
    return view_suspension(saved.record, await parts.freezes.in_force())


@router.post("/{suspension_id}/items/{item_id}/extend", operation_id="extendItem", responses=WRITES)
async def extend_item(
    suspension_id: SuspensionId, item_id: ItemId, body: ExtendRequest, caller: Person, parts: Parts, key: IdempotencyKey
) -> SuspensionView:
    """Extend the deadline within the item's terms. The item's digest changes with it."""
    until_ms = int(body.until.timestamp() * 1000)
    saved = await parts.desk.extend(suspension_id, item_id, until_ms, caller.reviewer("api"), key)
    return view_suspension(saved.record, await parts.freezes.in_force())


def _cut_page(page: list[SuspensionRecord | UnreadableRecord]) -> list[SuspensionRecord | UnreadableRecord]:
    """Return the first of a page whose arguments are together short enough to write at once, and at least one."""
    room = _PAGE_CHARS
    for place, record in enumerate(page):
        for item in record.items if isinstance(record, SuspensionRecord) else ():
            size = measure(item.tool.args)
            room -= size.chars + _VALUE_CHARS * size.values
        if room < 0 and place:
            return page[:place]
    return page


async def _page(
    parts: Wiring, caller: Principal, status: str, skip: int, limit: int
) -> list[SuspensionRecord | UnreadableRecord]:
    """Return a page; an agent's is filtered from all, or in a long inbox found by the index of its runs."""
    lists = {"pending": parts.runs.inbox, "undoable": parts.runs.undoable, "decided": parts.runs.decided}
    read_ids = lists[status]
    if caller.owner is None:
        return await parts.desk.suspensions.read_page(await read_ids(skip, limit))
    if status == "pending" and await parts.runs.count_pending() > _MAX_SCANNED:
        ids = await parts.runs.waiting_of(caller.owner)
        return await parts.desk.suspensions.read_page(ids[skip : skip + limit])
    own: list[SuspensionRecord | UnreadableRecord] = []
    position = 0
    while len(own) < skip + limit:
        ids = await read_ids(position, _PAGE)
        records = await parts.desk.suspensions.read_many(ids)
        own += [record for record in records if record.run.owner == caller.owner and not record.is_drill]
        position += _PAGE
        if len(ids) < _PAGE:
            break
    return own[skip : skip + limit]


def view_suspension(record: SuspensionRecord, freezes: Iterable[Freeze], owner: str | None = None) -> SuspensionView:
    """Return the view of a suspension, with `owner` an agent's; secrets that people typed are masked."""
    masked = mask_typed(record)
    view = show_suspension(masked, tuple(freezes), owner)
    if owner is not None or all(item.terms.confirm_by is None for item in record.items):
        return view
    pairs = zip(view.items, record.items, masked.items, strict=True)
    items = (shown.model_copy(update={"to_confirm": _find_call(record, *known)}) for shown, *known in pairs)
    return view.model_copy(update={"items": tuple(items)})


def _find_call(record: SuspensionRecord, item: Item, masked: Item) -> ToConfirmView | None:
    """Return the call that waits for its confirmation, with the arguments of the masked item."""
    args, shown = find_args(item), find_args(masked)
    if args is None or shown is None or not (is_live(record, item) and needs_confirmation(item)):
        return None
    return ToConfirmView(digest=digest_version(record, item, args), args=shown)


def view_unreadable(records: Iterable[object]) -> list[UnreadableView]:
    """Return the views of those records that cannot be read."""
    return [UnreadableView.model_validate(record) for record in records if isinstance(record, UnreadableRecord)]


inquiries = APIRouter(prefix="/suspensions/{suspension_id}", tags=["inquiries"], route_class=SignedInRoute)

InquiryId = Annotated[str, Path(min_length=1, max_length=100, examples=["inq_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class InquiryRequest(RequestBody):
    """A question to the requester, or its answer."""

    text: str = Field(min_length=1, max_length=LONGEST_TEXT, examples=["Which order is this about?"])


@inquiries.post("/items/{item_id}/claim", operation_id="claimItem", responses=WRITES)
async def claim_item(suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts) -> SuspensionView:
    """Tell the other reviewers for 15 minutes that you handle the item, or renew it. They may still decide."""
    saved = await parts.desk.claim(suspension_id, item_id, caller.reviewer("api"))
    return view_suspension(saved.record, await parts.freezes.in_force())


@inquiries.delete("/items/{item_id}/claim", operation_id="releaseItem", responses=WRITES)
async def release_item(suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts) -> SuspensionView:
    """Release your claim."""
    saved = await parts.desk.release_claim(suspension_id, item_id, caller.reviewer("api"))
    return view_suspension(saved.record, await parts.freezes.in_force())


@inquiries.post("/items/{item_id}/inquiries", operation_id="askRequester", responses=WRITES)
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


@inquiries.post("/items/{item_id}/inquiries/{inquiry_id}/answer", operation_id="answerInquiry", responses=WRITES)
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


@inquiries.get("/inquiries", operation_id="listInquiries", responses=WAITS)
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
