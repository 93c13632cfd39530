"""Requests and responses for comments on items and attached files."""

import base64

from sayso.client.requests import Request, item_path, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.items import AttachmentContent, AttachmentPage, CommentPage


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
