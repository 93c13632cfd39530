"""Files attached to an item: sent by a form, and served so that no browser runs anything in them."""

import re

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from sayso.core.text.language import _
from sayso.errors import InvalidInput
from service.http.middleware import SANDBOX
from service.operations.discussing.attachments import attach, find_media_type, read_attachment
from service.operations.discussing.images import is_showable
from service.web.form_posts import RecordedRoute, check_session
from service.web.sessions import SignedIn, wiring_of

router = APIRouter(route_class=RecordedRoute)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@router.post("/items/{suspension_id}/{item_id}/attachments")
async def send_file(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Attach the visitor's file; a form sent twice attaches it once."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidInput(_("Send the form as multipart/form-data."))
    async with request.form(max_files=1, max_fields=5) as form:
        check_session({"csrf": str(form.get("csrf", ""))}, visitor)
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InvalidInput(_("Choose a file, then attach it."))
        name, content = file.filename, await file.read()
    by = visitor.principal.actor("web")
    await attach(wiring_of(request), suspension_id, item_id, name, content, by)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}#files", 303)


@router.get("/items/{suspension_id}/{item_id}/attachments/{attachment_id}")
async def serve_file(
    request: Request, visitor: SignedIn, suspension_id: str, item_id: str, attachment_id: str
) -> Response:
    """Return a file: an image by its bytes for display, anything else as a download."""
    attachment, content = await read_attachment(wiring_of(request), suspension_id, item_id, attachment_id)
    media_type = find_media_type(content) or "application/octet-stream"
    shown = media_type.startswith("image/") and is_showable(content)
    media_type = media_type if shown or not media_type.startswith("image/") else "application/octet-stream"
    name = _UNSAFE.sub("_", attachment.name)[:100]
    return Response(
        content,
        media_type=media_type,
        headers={
            "Content-Disposition": f'{"inline" if shown else "attachment"}; filename="{name}"',
            "Content-Security-Policy": SANDBOX,
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )
