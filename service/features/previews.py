"""The route and the form that ask a worker what a call would do, before anybody decides on it."""

from typing import Annotated

from fastapi import APIRouter, Body, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.canonical_json import JsonObject
from sayso.wire.models import RequestBody
from sayso.wire.suspensions import SuspensionView
from service.edge.api.dependencies import IdempotencyKey, ItemId, Parts, Person, SuspensionId
from service.edge.api.routes import SignedInRoute
from service.edge.api.suspensions import view_suspension
from service.edge.http.openapi import WRITES
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of

previews = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)
router = APIRouter(route_class=RecordedRoute)


class PreviewBody(RequestBody):
    """What to preview."""

    args: JsonObject | None = None


@previews.post("/{suspension_id}/items/{item_id}/preview", operation_id="previewItem", responses=WRITES)
async def preview_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: Annotated[PreviewBody, Body()],
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> SuspensionView:
    """Ask a worker what the call would do, or would with edited `args`. Its answer stands in the item's `previews`."""
    by = caller.reviewer("api")
    saved = await parts.desk.request_preview(suspension_id, item_id, body.args, by, key)
    return view_suspension(saved.record, await parts.freezes.in_force())


@router.post("/items/{suspension_id}/{item_id}/preview")
async def ask_preview(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Ask a worker for the preview again."""
    await read_post(request, visitor)
    by = visitor.principal.reviewer("web")
    await wiring_of(request).desk.request_preview(suspension_id, item_id, None, by)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}", 303)
