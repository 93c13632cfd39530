"""Requests for administration: sessions, reviewers, erasures, freezes, diagnostics and rules."""

from collections.abc import Mapping

from sayso.client.people import path_of
from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import administration as views
from sayso.wire.models import Empty
from sayso.wire.suspensions import ErasureView

DIAGNOSE = Request("GET", "/api/v1/diagnostics", views.FindingList)


def erase_run(run_id: str, reason: str) -> Request[ErasureView]:
    """Erase the contents of an ended run; its decisions remain. An admin does."""
    return Request("POST", f"/api/v1/runs/{segment(run_id)}/erase", ErasureView, body={"reason": reason})


LIST_FREEZES = Request("GET", "/api/v1/freezes", views.FreezeList)
LIST_REVIEWERS = Request("GET", "/api/v1/reviewers", views.ReviewerList)


def freeze(scope: str, reason: str, *, confirm: bool) -> Request[views.FreezeView]:
    """Freeze a scope. A name that the desk has never seen requires `confirm`."""
    body: JsonObject = {"scope": scope, "reason": reason, "confirm": confirm}
    return Request("POST", "/api/v1/freezes", views.FreezeView, body=body)


def unfreeze(name: str) -> Request[views.FreezeView]:
    """Unfreeze a scope, by its name or by the id of its freeze. Deadlines shift by the duration of the freeze."""
    return Request("POST", f"/api/v1/freezes/{segment(name)}/unfreeze", views.FreezeView)


def check_rules(text: str, file: str, lists: Mapping[str, str] | None = None) -> Request[views.RulesChecked]:
    """Check rules; `lists` are the texts of the files that their lists name."""
    body: JsonObject = {"text": text, "file": file, **({"lists": dict(lists)} if lists else {})}
    return Request("POST", "/api/v1/policy/check", views.RulesChecked, body=body)


def probe(path: str) -> Request[Empty]:
    """Read a health endpoint."""
    return Request("GET", path, Empty)


def change_password(current: str, password: str) -> Request[views.SessionView]:
    """Change your password. The response has a new session."""
    body: JsonObject = {"current": current, "password": password}
    return Request("POST", "/api/v1/account/password", views.SessionView, body=body)


def list_sessions(name: str | None) -> Request[views.SessionList]:
    """List your own sessions, or those of the reviewer `name`."""
    return Request("GET", f"{path_of(name)}/sessions", views.SessionList)


def end_sessions(name: str | None) -> Request[views.EndedSessions]:
    """End your other sessions, or all sessions of the reviewer `name`."""
    return Request("DELETE", f"{path_of(name)}/sessions", views.EndedSessions)


def end_session(name: str | None, session_id: str) -> Request[Empty]:
    """End one session."""
    return Request("DELETE", f"{path_of(name)}/sessions/{segment(session_id)}", Empty)


def set_active(name: str, active: bool) -> Request[views.ReviewerView]:
    """Activate or deactivate a reviewer."""
    return Request("POST", f"{path_of(name)}/{'activate' if active else 'deactivate'}", views.ReviewerView)


def explain_call(call: JsonObject | None, item: str | None = None) -> Request[views.Explained]:
    """Say which rule decides a call, the call of an item, or a call with the facts about an item's run."""
    body: JsonObject = {name: value for name, value in (("call", call), ("item", item)) if value is not None}
    return Request("POST", "/api/v1/policy/explain", views.Explained, body=body)


def set_manager(name: str, manager: str | None) -> Request[views.ReviewerView]:
    """Set who manages a person; None for nobody."""
    return Request("POST", f"{path_of(name)}/manager", views.ReviewerView, body={"manager": manager})
