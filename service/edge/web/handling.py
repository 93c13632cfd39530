"""What reviewers do about an item beside deciding: claim it, ask its requester, and take a decision back."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

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


@router.post("/items/{suspension_id}/{item_id}/ask")
async def ask(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Put the visitor's question to the requester; a form sent twice asks once."""
    text = (await read_post(request, visitor)).get("text", "").replace("\r\n", "\n")
    by = visitor.principal.reviewer("web")
    await wiring_of(request).desk.ask_requester(
        suspension_id, item_id, text, by, f"web {suspension_id} {item_id} {text}"
    )
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)
