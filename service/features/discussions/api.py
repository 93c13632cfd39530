"""Routes of comments on items and of files attached to them."""

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.errors import InvalidInput
from sayso.wire.items import AttachmentContent, AttachmentPage, AttachmentView, CommentPage, CommentView
from sayso.wire.models import RequestBody
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
from service.edge.http.openapi import READS, WRITES, problems
from service.features.discussions.discussing import LONGEST_NAME, add_comment, attach, list_attachments, read_attachment
from service.features.discussions.store import LONGEST_COMMENT, Comments

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


@comments.get("/runs/{run_id}/comments", operation_id="listComments", responses=READS | problems(403))
async def list_comments(run_id: RunId, caller: Person, parts: Parts) -> CommentPage:
    """Return the comments on all items of a run. They are kept as long as its trail, also after the run's deletion."""
    if not await parts.retention.keeps_trail(run_id):
        await find_run(parts, caller, run_id)
    comments = await parts.part(Comments).list_all(run_id)
    return CommentPage(comments=[CommentView.model_validate(comment) for comment in comments])
