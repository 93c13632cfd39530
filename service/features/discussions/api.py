"""Routes and page forms of comments, of attached files, and of who has an item open: its page says so every 10 s."""

import base64
import binascii
import json
import re
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field
from starlette.datastructures import UploadFile

from sayso.core.clock import now_ms
from sayso.core.text.invisible import write_signs
from sayso.core.text.language import _
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput
from sayso.wire.items import AttachmentContent, AttachmentPage, AttachmentView, CommentPage, CommentView
from sayso.wire.models import RequestBody
from service.core.wiring import Wiring
from service.edge.api.dependencies import (
    Caller,
    IdempotencyKey,
    ItemId,
    Parts,
    Person,
    RunId,
    SuspensionId,
    find_run,
    find_suspension,
)
from service.edge.api.routes import SignedInRoute
from service.edge.http.middleware import SANDBOX
from service.edge.http.openapi import READS, WRITES
from service.edge.web.additions import ItemForm, ItemVisit
from service.edge.web.sessions import RecordedRoute, SignedIn, check_session, read_post, wiring_of
from service.features.discussions.discussing import (
    LONGEST_NAME,
    add_comment,
    attach,
    find_media_type,
    is_showable,
    list_attachments,
    read_attachment,
)
from service.features.discussions.store import LONGEST_COMMENT, Comments, Presence

attachments = APIRouter(
    prefix="/suspensions/{suspension_id}/items/{item_id}/attachments", tags=["attachments"], route_class=SignedInRoute
)

AttachmentId = Annotated[str, Path(min_length=1, max_length=100, examples=["att_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class AttachmentRequest(RequestBody):
    """A file to attach."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, examples=["receipt.png"])
    content: str = Field(min_length=1, description="The bytes in base64.", examples=["JVBERi0xLjcK"])


@attachments.post("", operation_id="attachFile", responses=WRITES)
async def attach_file(
    suspension_id: SuspensionId, item_id: ItemId, body: AttachmentRequest, caller: Caller, parts: Parts
) -> AttachmentPage:
    """Attach an image, a PDF or a text to an open item. The answer has all files that the caller may read."""
    await find_suspension(parts, caller.owner, suspension_id)
    try:
        content = base64.b64decode(body.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("content is not base64. Encode the bytes of the file, and send them again.") from error
    await attach(parts, suspension_id, item_id, body.name, content, caller.actor("api"), caller.key_id)
    return await list_files(suspension_id, item_id, caller, parts)


@attachments.get("", operation_id="listAttachments", responses=READS)
async def list_files(suspension_id: SuspensionId, item_id: ItemId, caller: Caller, parts: Parts) -> AttachmentPage:
    """List the files of an item. An agent's key lists only what agents attached."""
    await find_suspension(parts, caller.owner, suspension_id)
    files = await list_attachments(parts, suspension_id, item_id, of_agent=caller.owner is not None)
    return AttachmentPage(attachments=[AttachmentView.model_validate(file) for file in files])


@attachments.get("/{attachment_id}", operation_id="getAttachment", responses=READS)
async def get_file(
    suspension_id: SuspensionId, item_id: ItemId, attachment_id: AttachmentId, caller: Caller, parts: Parts
) -> AttachmentContent:
    """Return a file with its content. It is as the sender wrote it: check it before you open it."""
    await find_suspension(parts, caller.owner, suspension_id)
    of_agent = caller.owner is not None
    attachment, content = await read_attachment(parts, suspension_id, item_id, attachment_id, of_agent=of_agent)
    return AttachmentContent(
        attachment=AttachmentView.model_validate(attachment), content=base64.b64encode(content).decode()
    )


comments = APIRouter(tags=["comments"], route_class=SignedInRoute)


class CommentRequest(RequestBody):
    """A comment for the other reviewers."""

    text: str = Field(min_length=1, max_length=LONGEST_COMMENT, examples=["The customer called; the order is real."])


@comments.post("/suspensions/{suspension_id}/items/{item_id}/comments", operation_id="addComment", responses=WRITES)
async def comment_on_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: CommentRequest,
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> CommentPage:
    """Comment on an item, also after its decision. The answer has all comments on it; the agent reads none."""
    saved = await add_comment(parts, suspension_id, item_id, body.text, caller.name, key)
    run_id = (await parts.desk.suspensions.read(suspension_id)).record.run.id
    comments = await parts.part(Comments).list_all(run_id)
    place = (saved.suspension_id, saved.item_id)
    own = [comment for comment in comments if (comment.suspension_id, comment.item_id) == place]
    return CommentPage(comments=[CommentView.model_validate(comment) for comment in own])


@comments.get("/runs/{run_id}/comments", operation_id="listComments", responses=READS)
async def list_comments(run_id: RunId, caller: Person, parts: Parts) -> CommentPage:
    """Return the comments on all items of a run. They are kept as long as its trail, also after the run's deletion."""
    if not await parts.retention.keeps_trail(run_id):
        await find_run(parts, caller, run_id)
    comments = await parts.part(Comments).list_all(run_id)
    return CommentPage(comments=[CommentView.model_validate(comment) for comment in comments])


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


async def _comment(visit: ItemVisit) -> None:
    """Save the visitor's comment; a form sent twice comments once."""
    text = visit.post.get("text", "").replace("\r\n", "\n").strip()
    place = visit.suspension_id, visit.item_id
    key = f"web {visit.suspension_id} {visit.item_id} {visit.post.get('nonce', '')} {text}"
    await add_comment(wiring_of(visit.request), *place, text, visit.visitor.name, key)


COMMENT = ItemForm("comments", ("text",), _comment)


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
