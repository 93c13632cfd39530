"""Requests and responses for administration: sessions, reviewers, keys, freezes, diagnostics and rules."""

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from sayso.client.people import path_of
from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor
from sayso.wire.models import Empty, View


class SessionView(View):
    """A new session."""

    token: str
    name: str
    roles: tuple[str, ...] = ()
    password_by: str = ""
    expires_at: datetime


class Key(View):
    """A key. `key` holds the secret only when the key is created."""

    id: str
    name: str
    kind: str = "agent"
    created_at: datetime
    revoked_at: datetime | None = None
    ends_at: datetime | None = None
    context: JsonObject = Field(default_factory=dict)
    owner: str | None = None
    created_by: str = ""
    last_used_at: datetime | None = None
    listed: bool = True
    key: str | None = None


class KeyPage(View):
    """All keys."""

    keys: tuple[Key, ...]


class Erasure(View):
    """The erasure of a run's contents; `seq` is the number of its trail event."""

    by: Actor
    at: datetime
    reason: str
    seq: int


class FreezeView(View):
    """A freeze in force."""

    id: str
    scope: str
    reason: str = ""
    by: str
    at: datetime


class FreezePage(View):
    """All freezes in force."""

    freezes: tuple[FreezeView, ...]


class Finding(View):
    """The state of one part of Sayso, and what to do if it does not work."""

    part: str
    ok: bool
    message: str
    todo: str = ""


class FindingPage(View):
    """The findings of all parts."""

    findings: tuple[Finding, ...]


class RulesChecked(View):
    """The result of checking rules."""

    ok: bool
    rules: int
    version: str | None = None
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class RuleTrial(View):
    """One rule tried on a call."""

    rule_id: str
    action: str
    match: str
    part: str = ""
    saw: JsonObject = Field(default_factory=dict)
    would: str | None = None
    sentence: str


class CallExplained(View):
    """The decision of the rules on a call, and every rule in the order of trial."""

    action: str
    effect: str
    reason: str
    rule_id: str | None = None
    rule_version: str
    error: str | None = None
    absolute: bool = False
    resembles: tuple[str, ...] = ()
    rules: tuple[RuleTrial, ...]


class OpenSession(View):
    """An open session."""

    id: str
    opened_at: datetime
    expires_at: datetime
    address: str = ""
    client: str = ""
    current: bool = False


class OpenSessionPage(View):
    """Open sessions, newest first."""

    sessions: tuple[OpenSession, ...]


class EndedSessions(View):
    """The number of sessions that were ended."""

    ended: int


class ReviewerView(View):
    """A reviewer."""

    name: str
    roles: tuple[str, ...] = ()
    active: bool
    manager: str | None = None
    created_at: datetime


class ReviewerPage(View):
    """All reviewers, sorted by name."""

    reviewers: tuple[ReviewerView, ...]


DIAGNOSE = Request("GET", "/api/v1/diagnostics", FindingPage)


def erase_run(run_id: str, reason: str) -> Request[Erasure]:
    """Erase the contents of an ended run; its decisions remain. An admin does."""
    return Request("POST", f"/api/v1/runs/{segment(run_id)}/erase", Erasure, body={"reason": reason})


LIST_FREEZES = Request("GET", "/api/v1/freezes", FreezePage)
LIST_REVIEWERS = Request("GET", "/api/v1/reviewers", ReviewerPage)


def freeze(scope: str, reason: str, *, confirm: bool) -> Request[FreezeView]:
    """Freeze a scope. A name that the desk has never seen requires `confirm`."""
    body: JsonObject = {"scope": scope, "reason": reason, "confirm": confirm}
    return Request("POST", "/api/v1/freezes", FreezeView, body=body)


def unfreeze(name: str) -> Request[FreezeView]:
    """Unfreeze a scope, by its name or by the id of its freeze. Deadlines shift by the duration of the freeze."""
    return Request("POST", f"/api/v1/freezes/{segment(name)}/unfreeze", FreezeView)


def check_rules(text: str, file: str, lists: Mapping[str, str] | None = None) -> Request[RulesChecked]:
    """Check rules; `lists` are the texts of the files that their lists name."""
    body: JsonObject = {"text": text, "file": file, **({"lists": dict(lists)} if lists else {})}
    return Request("POST", "/api/v1/policy/check", RulesChecked, body=body)


def probe(path: str) -> Request[Empty]:
    """Read a health endpoint."""
    return Request("GET", path, Empty)


def change_password(current: str, password: str) -> Request[SessionView]:
    """Change your password. The response has a new session."""
    body: JsonObject = {"current": current, "password": password}
    return Request("POST", "/api/v1/account/password", SessionView, body=body)


def list_sessions(name: str | None) -> Request[OpenSessionPage]:
    """List your own sessions, or those of the reviewer `name`."""
    return Request("GET", f"{path_of(name)}/sessions", OpenSessionPage)


def end_sessions(name: str | None) -> Request[EndedSessions]:
    """End your other sessions, or all sessions of the reviewer `name`."""
    return Request("DELETE", f"{path_of(name)}/sessions", EndedSessions)


def end_session(name: str | None, session_id: str) -> Request[Empty]:
    """End one session."""
    return Request("DELETE", f"{path_of(name)}/sessions/{segment(session_id)}", Empty)


def set_active(name: str, active: bool) -> Request[ReviewerView]:
    """Activate or deactivate a reviewer."""
    return Request("POST", f"{path_of(name)}/{'activate' if active else 'deactivate'}", ReviewerView)


def explain_call(call: JsonObject | None, item: str | None = None) -> Request[CallExplained]:
    """Say which rule decides a call, the call of an item, or a call with the facts about an item's run."""
    body: JsonObject = {name: value for name, value in (("call", call), ("item", item)) if value is not None}
    return Request("POST", "/api/v1/policy/explain", CallExplained, body=body)


def set_manager(name: str, manager: str | None) -> Request[ReviewerView]:
    """Set who manages a person; None for nobody."""
    return Request("POST", f"{path_of(name)}/manager", ReviewerView, body={"manager": manager})
