"""Routes of files attached to items, by reviewers and by the key that owns the run."""

import base64
import binascii
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from sayso.errors import InvalidInput
from service.api.routing.dependencies import Caller, ItemId, Parts, SuspensionId
from service.api.routing.lookups import find_suspension
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, Timestamp, View
from service.http.openapi import READS, WRITES
from service.operations.discussing.attachments import LONGEST_NAME, attach, list_attachments, read_attachment

router = APIRouter(
    prefix="/suspensions/{suspension_id}/items/{item_id}/attachments", tags=["attachments"], route_class=SignedInRoute
)

AttachmentId = Annotated[str, Path(min_length=1, max_length=100, examples=["att_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class AttachmentRequest(RequestBody):
    """A file to attach."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, examples=["receipt.png"])
    content: str = Field(min_length=1, description="The bytes in base64.", examples=["JVBERi0xLjcK"])


class AttachmentView(View):
    """A file attached to an item."""

    id: str
    name: str
    media_type: str = Field(description="What the bytes are; the sender's statement does not count.")
    size: int
    sha256: str
    author: str
    author_kind: Literal["agent", "human"]
    at: Timestamp = Field(validation_alias="at_ms")


class AttachmentPage(BaseModel):
    """The files of an item, the earliest first."""

    attachments: list[AttachmentView]


class AttachmentContent(BaseModel):
    """A file and its content."""

    attachment: AttachmentView
    content: str = Field(description="The bytes in base64.")


@router.post("", operation_id="attachFile", responses=WRITES)
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


@router.get("", operation_id="listAttachments", responses=READS)
async def list_files(suspension_id: SuspensionId, item_id: ItemId, caller: Caller, parts: Parts) -> AttachmentPage:
    """List the files of an item. An agent's key lists only what agents attached."""
    await find_suspension(parts, caller.owner, suspension_id)
    files = await list_attachments(parts, suspension_id, item_id, of_agent=caller.owner is not None)
    return AttachmentPage(attachments=[AttachmentView.model_validate(file) for file in files])


@router.get("/{attachment_id}", operation_id="getAttachment", responses=READS)
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
