"""What reviewers do about an item beside deciding: claim it, ask its requester, and take a decision back."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.core.records.decisions import ConfirmRequest
from sayso.core.text.language import _
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput
from service.core.store.channels import ChannelNotes
from service.edge.web.additions import ItemForm, ItemVisit
from service.edge.web.content import details
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of

router = APIRouter(route_class=RecordedRoute)


@router.post("/items/{suspension_id}/{item_id}/claim")
async def claim(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Claim the item for 15 minutes."""
    await read_post(request, visitor)
    await wiring_of(request).desk.claim(suspension_id, item_id, visitor.principal.reviewer("web"))
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)


@router.post("/items/{suspension_id}/{item_id}/release")
async def release(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Release the visitor's claim."""
    await read_post(request, visitor)
    await wiring_of(request).desk.release_claim(suspension_id, item_id, visitor.principal.reviewer("web"))
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)


@router.post("/items/{suspension_id}/{item_id}/retract")
async def retract(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Take the visitor's decision back, so that they can decide anew."""
    await read_post(request, visitor)
    await wiring_of(request).desk.retract(suspension_id, item_id, visitor.principal.reviewer("web"))
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)


@router.post("/items/{suspension_id}/{item_id}/confirm")
async def confirm(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Confirm the call that an agent makes for the visitor, or decline it; a form sent twice counts once."""
    post, wiring, by = await read_post(request, visitor), wiring_of(request), visitor.principal.reviewer("web")
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    item = find_item(record, item_id)
    definition = await wiring.runs.definition(item.tool.definition)
    declines = post.get("answer") == "decline"
    view = details.look_at(record, item, definition, shown=False)
    await details.check_shown(wiring.part(ChannelNotes), visitor.name, view, "deny" if declines else "approve")
    sent = {"action": "decline" if declines else "confirm", "digest": post.get("digest", "")}
    sent |= {"message": post["message"]} if declines and post.get("message") else {}
    try:
        said = ConfirmRequest.model_validate(sent)
    except ValidationError as error:
        raise InvalidInput(_("The form was not complete. Open the item again.")) from error
    key = "-".join(("web", item_id, *sent.values()))[:200]
    await wiring.desk.confirm(suspension_id, item_id, said, by, key)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)


async def ask(visit: ItemVisit) -> None:
    """Put the visitor's question to the requester; a form sent twice asks once."""
    place, text = (visit.suspension_id, visit.item_id), visit.post.get("text", "").replace("\r\n", "\n")
    key = f"web {visit.suspension_id} {visit.item_id} {text}"
    await wiring_of(visit.request).desk.ask_requester(*place, text, visit.by, key)


QUESTION = ItemForm("ask", ("text",), ask)
