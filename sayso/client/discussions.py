"""Requests and responses for reviewers' comments on items."""

from datetime import datetime

from sayso.client.requests import Request, item_path, segment
from sayso.client.responses import ResponseModel


class CommentView(ResponseModel):
    """A reviewer's comment on an item, for other reviewers."""

    id: str
    suspension_id: str
    item_id: str
    author: str
    text: str
    at: datetime


class CommentPage(ResponseModel):
    """Comments, the earliest first."""

    comments: tuple[CommentView, ...]


def add_comment(suspension_id: str, item_id: str, text: str, key: str) -> Request[CommentPage]:
    """Comment on an item."""
    path = f"{item_path(suspension_id, item_id)}/comments"
    return Request("POST", path, CommentPage, body={"text": text}, key=key)


def list_comments(run_id: str) -> Request[CommentPage]:
    """List the comments on all items of a run."""
    return Request("GET", f"/api/v1/runs/{segment(run_id)}/comments", CommentPage)
