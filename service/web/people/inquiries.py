"""Claims of items, and questions to their requesters, on the item's page."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from service.web.form_posts import RecordedRoute, read_post
from service.web.sessions import SignedIn, wiring_of

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


@router.post("/items/{suspension_id}/{item_id}/ask")
async def ask(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Put the visitor's question to the requester; a form sent twice asks once."""
    post = await read_post(request, visitor)
    text = post.get("text", "").replace("\r\n", "\n")
    by = visitor.principal.reviewer("web")
    await wiring_of(request).desk.ask_requester(
        suspension_id, item_id, text, by, f"web {suspension_id} {item_id} {text}"
    )
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)
