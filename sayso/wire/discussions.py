"""Views of comments on items and of files attached to them."""

import base64
from typing import Literal

from pydantic import Field

from sayso.wire.models import Timestamp, View


class CommentView(View):
    """A comment on an item."""

    id: str
    suspension_id: str
    item_id: str
    author: str = Field(description="The reviewer who wrote it.")
    text: str
    at: Timestamp = Field(validation_alias="at_ms")


class CommentPage(View):
    """Comments in order, the earliest first."""

    comments: list[CommentView]


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


class AttachmentPage(View):
    """The files of an item, the earliest first."""

    attachments: list[AttachmentView]


class AttachmentContent(View):
    """A file and its content."""

    attachment: AttachmentView
    content: str = Field(description="The bytes in base64.")

    @property
    def bytes(self) -> bytes:
        """The bytes of the file."""
        return base64.b64decode(self.content)
