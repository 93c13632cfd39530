"""Requests and responses for comments on items and attached files."""

import base64
from datetime import datetime

from sayso.client.requests import Request, item_path, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import View


class CommentView(View):
    """A reviewer's comment on an item, for other reviewers."""

    id: str
    suspension_id: str
    item_id: str
    author: str
    text: str
    at: datetime


class CommentPage(View):
    """Comments, the earliest first."""

    comments: tuple[CommentView, ...]


class AttachmentView(View):
    """A file attached to an item."""

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    author: str
    author_kind: str
    at: datetime


class AttachmentPage(View):
    """The files of an item, the earliest first."""

    attachments: tuple[AttachmentView, ...]


class AttachmentContent(View):
    """An attached file with its content."""

    attachment: AttachmentView
    content: str

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.content)


def attach(suspension_id: str, item_id: str, name: str, content: bytes) -> Request[AttachmentPage]:
    """Attach a file to an item."""
    body: JsonObject = {"name": name, "content": base64.b64encode(content).decode()}
    return Request("POST", f"{item_path(suspension_id, item_id)}/attachments", AttachmentPage, body=body)


def list_attachments(suspension_id: str, item_id: str) -> Request[AttachmentPage]:
    """List the files of an item."""
    return Request("GET", f"{item_path(suspension_id, item_id)}/attachments", AttachmentPage)


def find_attachment(suspension_id: str, item_id: str, attachment_id: str) -> Request[AttachmentContent]:
    """Read an attached file."""
    path = f"{item_path(suspension_id, item_id)}/attachments/{segment(attachment_id)}"
    return Request("GET", path, AttachmentContent)


def add_comment(suspension_id: str, item_id: str, text: str, key: str) -> Request[CommentPage]:
    """Comment on an item."""
    path = f"{item_path(suspension_id, item_id)}/comments"
    return Request("POST", path, CommentPage, body={"text": text}, key=key)


def list_comments(run_id: str) -> Request[CommentPage]:
    """List the comments on all items of a run."""
    return Request("GET", f"/api/v1/runs/{segment(run_id)}/comments", CommentPage)
