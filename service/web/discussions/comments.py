"""Comments of reviewers, from the item's page."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from service.operations.discussing.comments import add_comment
from service.web.form_posts import RecordedRoute, read_post
from service.web.sessions import SignedIn, wiring_of

router = APIRouter(route_class=RecordedRoute)


@router.post("/items/{suspension_id}/{item_id}/comments")
async def comment(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Save the visitor's comment; a form sent twice comments once."""
    post = await read_post(request, visitor)
    text = post.get("text", "").replace("\r\n", "\n").strip()
    key = f"web {suspension_id} {item_id} {post.get('nonce', '')} {text}"
    await add_comment(wiring_of(request), suspension_id, item_id, text, visitor.name, key)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}#comments", 303)
