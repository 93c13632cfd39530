"""Attach files to open items. What a file is, only its bytes say: an image of pixels, a PDF or a text."""

import asyncio
import re
from hashlib import sha256

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import Status
from sayso.core.text.language import cut
from sayso.core.transitions.deciding import find_item
from sayso.errors import Conflict, InvalidInput, NotFound, TooLarge
from service.operations.discussing.images import is_showable
from service.store.runs.attachments import Attachment
from service.wiring import Wiring

LONGEST_NAME = 200
PDF, TEXT = "application/pdf", "text/plain"
_PREVIEW_CHARS = 4_000
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # the others stand in texts and logs, as does ESC


def find_media_type(content: bytes) -> str | None:
    """Return what the bytes are, None for what may not be attached. SVG and HTML are texts."""
    image = next((media_type for begins, media_type in _IMAGES if begins.match(content)), None)
    if image is not None:
        return image
    if content.startswith(b"%PDF-"):
        return PDF
    try:
        return None if not content or _NO_TEXT.search(content.decode()) else TEXT
    except UnicodeDecodeError:
        return None


async def attach(
    wiring: Wiring, suspension_id: str, item_id: str, name: str, content: bytes, by: Actor, key_id: str | None = None
) -> Attachment:
    """Attach a file to an open item; the same file of the same person or agent is attached once.

    Raises `InvalidInput`, `TooLarge`, `Conflict` for an item that is not open, and what the store raises.
    """
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    item = find_item(record, item_id)
    limit_bytes = wiring.attachments.limit_bytes
    if len(content) > limit_bytes:
        raise TooLarge(f"The file is over {limit_bytes} bytes. Attach a smaller one.", limit_bytes=limit_bytes)
    media_type = find_media_type(content)
    if media_type is None:
        raise InvalidInput(
            "The file is no PNG, JPEG, GIF or WebP image, no PDF and no text in UTF-8. Attach one of them."
        )
    if not item.open or record.status is not Status.PENDING:
        raise Conflict("This item is no longer open. Files can be attached only before the decision; you may comment.")
    written = content.decode() if media_type == TEXT else ""
    name = re.split(r"[/\\]", name)[-1].strip()[:LONGEST_NAME] or "file"
    digest = sha256(content).hexdigest()
    identity = f"{suspension_id} {item_id} {by.kind} {by.id} {name} {digest}"
    attachment = Attachment(
        id=f"att_{sha256(identity.encode('utf-8', 'replace')).hexdigest()[:32]}",
        suspension_id=suspension_id,
        item_id=item_id,
        name=name,
        media_type=media_type,
        size=len(content),
        sha256=digest,
        author=by.id,
        author_kind="agent" if by.kind is ActorKind.AGENT else "human",
        preview=cut(written, _PREVIEW_CHARS),
        cut=len(written) > _PREVIEW_CHARS,
        shown=not media_type.startswith("image/") or await asyncio.to_thread(is_showable, content),
    )
    await wiring.attachments.add(record.run.id, attachment, content, key_id)
    return attachment


async def list_attachments(
    wiring: Wiring, suspension_id: str, item_id: str, *, of_agent: bool = False
) -> list[Attachment]:
    """Return the files of an item, the earliest first; only the agent's own with `of_agent`."""
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    find_item(record, item_id)
    files = await wiring.attachments.list_all(record.run.id, suspension_id, item_id)
    return [file for file in files if file.author_kind == "agent" or not of_agent]


async def read_attachment(
    wiring: Wiring, suspension_id: str, item_id: str, attachment_id: str, *, of_agent: bool = False
) -> tuple[Attachment, bytes]:
    """Return a file of an item and its content; raises `NotFound`."""
    files = await list_attachments(wiring, suspension_id, item_id, of_agent=of_agent)
    file = next((file for file in files if file.id == attachment_id), None)
    if file is None:
        raise NotFound(f"The item has no attached file {attachment_id!r}.")
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    return file, await wiring.attachments.read(record.run.id, attachment_id)
