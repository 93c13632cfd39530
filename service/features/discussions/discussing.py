"""Comments on items, open or decided, and files attached to open ones, as they come in and as pages show them.

What a file is, only its bytes say: an image, a PDF or a text. An image's size is read from its header, because a
browser reserves memory for every pixel, also of a small file.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc, new_id
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.text.language import _, cut
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.closing import list_typed
from sayso.core.transitions.deciding import find_item
from sayso.errors import Conflict, InvalidInput, NotFound, TooLarge
from service.core.wiring import Wiring
from service.edge.web.additions import ItemPage, RunPage
from service.edge.web.content.cards import item_href
from service.edge.web.content.timeline import Line
from service.features.discussions.store import Attachment, Attachments, Comment, Comments

MOST_PIXELS = 40_000_000
"""Pixels of an image up to which pages show it: a picture of a camera, about 160 MB in a browser."""

_MOST_PARTS = 10_000  # frames and segments of one image that are read
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers that begin a frame
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_JPEG_PIXELS = 0xDA  # the marker that pixels follow
_GIF_IMAGE, _GIF_EXTENSION = 0x2C, 0x21


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def is_showable(content: bytes) -> bool:
    """Return whether an image says its size in each of its headers, and none is beyond `MOST_PIXELS`."""
    try:
        sizes = [*_read_sizes(content)]
    except (IndexError, ValueError):
        return False
    return bool(sizes) and all(0 < size.width * size.height <= MOST_PIXELS for size in sizes)


def _read_sizes(content: bytes) -> Iterator[Size]:
    if content.startswith(b"\x89PNG"):
        yield _read_pair(content, 16, 4, "big") if content[12:16] == b"IHDR" else Size(0, 0)
    elif content.startswith(b"GIF8"):
        yield _read_pair(content, 6, 2, "little")
        yield from _read_gif_frames(content)
    elif content.startswith(b"\xff\xd8"):
        yield from _read_jpeg(content)
    elif content[8:12] == b"WEBP":
        yield from _read_webp(content)


def _read_pair(content: bytes, offset: int, length: int, order: Literal["big", "little"]) -> Size:
    if len(content) < offset + 2 * length:
        raise ValueError("the header is cut off")
    first, second = content[offset : offset + length], content[offset + length : offset + 2 * length]
    return Size(int.from_bytes(first, order), int.from_bytes(second, order))


def _read_gif_frames(content: bytes) -> Iterator[Size]:
    """Yield the area that each frame reaches to; it may lie outside of the canvas."""
    offset = 13 + _gif_table(content[10])
    for _part in range(_MOST_PARTS):
        if offset >= len(content) or content[offset] not in (_GIF_IMAGE, _GIF_EXTENSION):
            return
        if content[offset] == _GIF_IMAGE:
            corner, size = _read_pair(content, offset + 1, 2, "little"), _read_pair(content, offset + 5, 2, "little")
            yield Size(corner.width + size.width, corner.height + size.height)
            offset += 11 + _gif_table(content[offset + 9])
        else:
            offset += 2
        while content[offset]:
            offset += 1 + content[offset]
        offset += 1
    raise ValueError("the image has too many frames")


def _gif_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_jpeg(content: bytes) -> Iterator[Size]:
    offset = 2
    for _part in range(_MOST_PARTS):
        if offset + 4 > len(content) or content[offset] != 0xFF:
            return
        marker = content[offset + 1]
        if marker == 0xFF or marker in _JPEG_ALONE:
            offset += 1 if marker == 0xFF else 2
            continue
        if marker == 0:
            raise ValueError("no marker: browsers search for the next one, and do not skip a segment")
        if marker in _JPEG_SIZES:
            height, width = _read_pair(content, offset + 5, 2, "big")
            yield Size(width, height)
        if marker == _JPEG_PIXELS:
            return
        offset += 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
    raise ValueError("the image has too many segments")


def _read_webp(content: bytes) -> Iterator[Size]:
    kind = content[12:16]
    if kind == b"VP8X":
        yield Size(1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little"))
    elif kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        yield Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    elif kind == b"VP8 ":
        width, height = _read_pair(content, 26, 2, "little")
        yield Size(width & 0x3FFF, height & 0x3FFF)


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
    """Attach a file to an open item, once for its author; raises `InvalidInput`, `TooLarge` and `Conflict`."""
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    item = find_item(record, item_id)
    limit_bytes = wiring.settings.attachment_limit_bytes
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
    await wiring.part(Attachments).add(record.run.id, attachment, content, wiring.settings, key_id)
    return attachment


async def list_attachments(
    wiring: Wiring, suspension_id: str, item_id: str, *, of_agent: bool = False
) -> list[Attachment]:
    """Return the files of an item, the earliest first; only the agent's own with `of_agent`."""
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    find_item(record, item_id)
    files = await wiring.part(Attachments).list_all(record.run.id, suspension_id, item_id)
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
    return file, await wiring.part(Attachments).read(record.run.id, file)


async def add_comment(
    wiring: Wiring, suspension_id: str, item_id: str, text: str, author: str, key: str | None
) -> Comment:
    """Save a person's comment on an item, with typed secrets masked, once for each of the person's keys."""
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    find_item(record, item_id)
    id_ = f"com_{sha256(f'{author} {key}'.encode()).hexdigest()[:32]}" if key else new_id("com")
    text = Redacted({}, list_typed(record)).scrub(text)
    comment = Comment(id=id_, suspension_id=suspension_id, item_id=item_id, author=author, text=text)
    await wiring.part(Comments).add(record.run.id, comment)
    return comment


class Remark(NamedTuple):
    """A comment with secrets masked, the path of its item and the name of the item's tool."""

    author: str
    text: str
    at_ms: int
    href: str
    about: str

    @property
    def export(self) -> JsonObject:
        return {"at": iso_utc(self.at_ms), "author": self.author, "text": self.text}

    @property
    def line(self) -> Line:
        sentence = _("%(who)s commented on %(item)s", who=self.author, item=self.about)
        return Line(seq=0, at_ms=self.at_ms, kind="comment", tone="plain", text=sentence, note=self.text)


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return an item's files and remarks, the timeline with those on the whole run, and a new comment's nonce."""
    record, item, secrets = page.view.record, page.view.item, page.view.secrets
    attachments = page.wiring.part(Attachments)
    scrub = secrets.scrub if secrets.masked else str
    files = [
        file.model_copy(update={"name": scrub(file.name), "preview": scrub(file.preview)})
        for file in await attachments.list_all(record.run.id, record.id, item.item_id)
    ]
    remarks = list_remarks(await page.wiring.part(Comments).list_all(record.run.id), [record], secrets)
    return {
        "agent_files": [file for file in files if file.author_kind == "agent"],  # they are claims
        "file_limit_bytes": page.wiring.settings.attachment_limit_bytes,
        "files": [file for file in files if file.author_kind == "human"],
        "lines": insert_remarks(page.lines, remarks),
        "remarks": [remark for remark in remarks if remark.href == item_href(record, item)],
        "nonce": new_id("com"),
    }


async def add_to_run(page: RunPage) -> dict[str, object]:
    """Return the remarks on a run's items, and its timeline with them."""
    remarks = list_remarks(await page.wiring.part(Comments).list_all(page.run_id), page.records, page.secrets)
    return {"lines": insert_remarks(page.lines, remarks), "remarks": remarks}


def list_remarks(comments: Iterable[Comment], records: Iterable[SuspensionRecord], secrets: Redacted) -> list[Remark]:
    """Return the comments on items of a run; `records` name the tools."""
    tools = {(record.id, item.item_id): item.tool.name for record in records for item in record.items}
    return [
        Remark(
            author=comment.author,
            text=secrets.scrub(comment.text) if secrets.masked else comment.text,
            at_ms=comment.at_ms,
            href=f"/items/{comment.suspension_id}/{comment.item_id}",
            about=tools.get((comment.suspension_id, comment.item_id), _("another item")),
        )
        for comment in comments
    ]


def insert_remarks(lines: Sequence[Line], remarks: Sequence[Remark]) -> list[Line]:
    """Return the lines of a timeline with a line for each remark, behind everything that happened before it."""
    result: list[Line] = []
    rest = [*remarks]
    for line in lines:
        while rest and rest[0].at_ms < line.at_ms:
            result.append(rest.pop(0).line)
        result.append(line)
    return [*result, *(remark.line for remark in rest)]
