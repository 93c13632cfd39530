"""The requests by which people see to their sign-in, and admins to that of others."""

from datetime import datetime
from urllib.parse import quote

from sayso.canonical_json import JsonObject
from sayso.client.requests import Exchange
from sayso.client.responses import Nothing, Reply, SessionSeen


class OpenSession(Reply):
    """A session that holds."""

    id: str
    opened_at: datetime
    expires_at: datetime
    address: str = ""
    client: str = ""
    current: bool = False


class OpenSessionPage(Reply):
    """Sessions that hold, the newest first."""

    sessions: tuple[OpenSession, ...]


class EndedSessions(Reply):
    """How many sessions were ended."""

    ended: int


class ReviewerSeen(Reply):
    """A person who may decide."""

    name: str
    roles: tuple[str, ...] = ()
    active: bool
    created_at: datetime


class ReviewerPage(Reply):
    """Everybody, by name."""

    reviewers: tuple[ReviewerSeen, ...]


def change_password(current: str, password: str) -> Exchange[SessionSeen]:
    """Choose a new password; the reply has a fresh session."""
    body: JsonObject = {"current": current, "password": password}
    return Exchange("POST", "/api/v1/account/password", SessionSeen, body=body)


def list_sessions(name: str | None) -> Exchange[OpenSessionPage]:
    """Read one's own sessions, or those of a reviewer."""
    return Exchange("GET", f"{_place(name)}/sessions", OpenSessionPage)


def end_sessions(name: str | None) -> Exchange[EndedSessions]:
    """End all other sessions of one's own, or all of a reviewer."""
    return Exchange("DELETE", f"{_place(name)}/sessions", EndedSessions)


def end_session(name: str | None, session_id: str) -> Exchange[Nothing]:
    """End one session."""
    return Exchange("DELETE", f"{_place(name)}/sessions/{quote(session_id, safe='')}", Nothing)


def list_reviewers() -> Exchange[ReviewerPage]:
    """Read everybody."""
    return Exchange("GET", "/api/v1/reviewers", ReviewerPage)


def activate(name: str) -> Exchange[ReviewerSeen]:
    """Let a reviewer in again."""
    return Exchange("POST", f"{_place(name)}/activate", ReviewerSeen)


def deactivate(name: str) -> Exchange[ReviewerSeen]:
    """Shut a reviewer out."""
    return Exchange("POST", f"{_place(name)}/deactivate", ReviewerSeen)


def _place(name: str | None) -> str:
    return f"/api/v1/reviewers/{quote(name, safe='')}" if name is not None else "/api/v1/account"
