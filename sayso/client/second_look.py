"""Requests and responses for second looks."""

from datetime import datetime

from sayso.canonical_json import JsonObject
from sayso.client.requests import Request, segment
from sayso.client.responses import ResponseModel

_PATH = "/api/v1/second-looks"


class SeenCall(ResponseModel):
    """A call that was drawn after it was allowed or decided."""

    run_id: str
    seq: int
    agent: str
    tool: str
    args: JsonObject
    rule_id: str | None = None
    verdict: str
    decided_by: tuple[str, ...] = ()
    at: datetime
    may_take: bool = False


class SecondLookPage(ResponseModel):
    """The calls that have waited longest, and how many wait."""

    calls: tuple[SeenCall, ...]
    total: int = 0


LIST_SECOND_LOOK = Request("GET", _PATH, SecondLookPage)


def take_second_look(run_id: str, seq: int, *, agrees: bool, reason: str = "") -> Request[SeenCall]:
    """Say whether the call of a trail event was right; a disagreement needs a reason."""
    body: JsonObject = {"opinion": "agree" if agrees else "disagree", "reason": reason}
    return Request("POST", f"{_PATH}/{segment(run_id)}/{seq}", SeenCall, body=body)
