"""Requests for checkpoints, evidence, archived runs and overrides."""

from collections.abc import Sequence

from sayso.client.requests import Request
from sayso.core.canonical_json import JsonObject
from sayso.wire import evidence as views


def list_checkpoints(after: int, limit: int) -> Request[views.CheckpointPage]:
    """List checkpoints after a number, the oldest first."""
    query = {"after": str(after), "limit": str(limit)}
    return Request("GET", "/api/v1/checkpoints", views.CheckpointPage, query=query)


def list_archived(day: str, skip: int, limit: int) -> Request[views.ArchivedRunPage]:
    """List archived runs that began on a day, the first first."""
    query = {"day": day, "skip": str(skip), "limit": str(limit)}
    return Request("GET", "/api/v1/archive", views.ArchivedRunPage, query=query)


def make_evidence(run_id: str | None, begin: str | None, end: str | None) -> Request[views.EvidenceView]:
    """Return the evidence of a run, or of those that began between two times."""
    given = {"run": run_id, "from": begin, "to": end}
    query = {name: value for name, value in given.items() if value is not None}
    return Request("GET", "/api/v1/evidence", views.EvidenceView, query=query)


def list_overrides(day: str) -> Request[views.OverrideLines]:
    """List what people edited and denied on a day in UTC; empty for today."""
    return Request("GET", "/api/v1/overrides", views.OverrideLines, query={"day": day} if day else {})


def check_heads(heads: Sequence[views.HeadToCheck]) -> Request[views.HeadsChecked]:
    """Compare heads of chains with the store."""
    body: JsonObject = {"heads": [head.model_dump() for head in heads]}
    return Request("POST", "/api/v1/checkpoints/check", views.HeadsChecked, body=body)
