"""Comments and attached files from an item's page, and who has the page open: it says so every 10 seconds."""

import json
import re

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from sayso.core.clock import now_ms
from sayso.core.text.invisible import write_signs
from sayso.core.text.language import _
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput
from service.core.wiring import Wiring
from service.edge.http.middleware import SANDBOX
from service.edge.web.sessions import RecordedRoute, SignedIn, check_session, read_post, wiring_of
from service.features.discussions.discussing import add_comment, attach, find_media_type, is_showable, read_attachment
from service.features.discussions.store import Presence

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


@router.post("/items/{suspension_id}/{item_id}/comments")
async def comment(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Save the visitor's comment; a form sent twice comments once."""
    post = await read_post(request, visitor)
    text = post.get("text", "").replace("\r\n", "\n").strip()
    key = f"web {suspension_id} {item_id} {post.get('nonce', '')} {text}"
    await add_comment(wiring_of(request), suspension_id, item_id, text, visitor.name, key)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}#comments", 303)


class Others:
    """The other people at items, as one stream has sent them."""

    event = "here"

    def __init__(self, wiring: Wiring, name: str) -> None:
        self._presence, self._name = wiring.part(Presence), name
        self.topic = self._presence.topic
        self._sent: dict[str, list[str]] = {}
        self._until_ms = 0

    @property
    def left_s(self) -> float:
        """Seconds until somebody is gone unless their page says more."""
        return max(0.0, (self._until_ms - now_ms()) / 1000) if self._until_ms else 3_600.0

    async def read_change(self) -> str | None:
        """Return everybody by item as JSON if that has changed since the last one."""
        present = await self._presence.read(now_ms())
        self._until_ms = present.until_ms
        others = {
            row_id: [write_signs(name) for name in names if name != self._name]
            for row_id, names in present.people.items()
        }
        others = {row_id: names for row_id, names in others.items() if names}
        if others == self._sent:
            return None
        self._sent = others
        return json.dumps(others)


@router.post("/items/{suspension_id}/{item_id}/here")
async def say_here(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Note that the visitor has the item open, or with `left` that they have closed it."""
    post = await read_post(request, visitor)
    wiring = wiring_of(request)
    find_item((await wiring.desk.suspensions.read(suspension_id)).record, item_id)
    row_id = f"{suspension_id}-{item_id}"
    if "left" in post:
        await wiring.part(Presence).forget(row_id, visitor.name)
    else:
        await wiring.part(Presence).note(row_id, visitor.name, now_ms())
    return Response(status_code=204)
