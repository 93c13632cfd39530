"""Requests for administration: people and what they set, freezes, diagnostics, rules."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from sayso.client.requests import Request, new_key, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import administration as views
from sayso.wire import people
from sayso.wire.models import Empty
from sayso.wire.suspensions import ErasureView

DIAGNOSE = Request("GET", "/api/v1/diagnostics", views.FindingList)


def erase_run(run_id: str, reason: str) -> Request[ErasureView]:
    """Erase the contents of an ended run; its decisions remain. An admin does."""
    return Request("POST", f"/api/v1/runs/{segment(run_id)}/erase", ErasureView, body={"reason": reason})


def list_activity(skip: int, limit: int) -> Request[views.ActivityList]:
    """List what people did and what was refused, the newest first."""
    return Request("GET", "/api/v1/activity", views.ActivityList, query={"skip": str(skip), "limit": str(limit)})


LIST_FREEZES = Request("GET", "/api/v1/freezes", views.FreezeList)
LIST_REVIEWERS = Request("GET", "/api/v1/reviewers", views.ReviewerList)


def freeze(scope: str, reason: str, *, confirm: bool) -> Request[views.FreezeView]:
    """Freeze a scope. A name that the desk has never seen requires `confirm`."""
    body: JsonObject = {"scope": scope, "reason": reason, "confirm": confirm}
    return Request("POST", "/api/v1/freezes", views.FreezeView, body=body)


def unfreeze(name: str, checked: str = "") -> Request[views.FreezeView]:
    """Unfreeze a scope, by its name or by the id of its freeze. Deadlines shift by the duration of the freeze."""
    return Request("POST", f"/api/v1/freezes/{segment(name)}/unfreeze", views.FreezeView, body={"checked": checked})


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


def add_reviewer(name: str, password: str, roles: Sequence[str]) -> Request[views.ReviewerView]:
    """Add a reviewer with a first password."""
    body: JsonObject = {"name": name, "password": password, "roles": [*roles]}
    return Request("POST", "/api/v1/reviewers", views.ReviewerView, body=body, key=new_key())


def set_roles(name: str, roles: Sequence[str]) -> Request[views.ReviewerView]:
    """Give a person these roles alone."""
    return Request("PUT", f"{path_of(name)}/roles", views.ReviewerView, body={"roles": [*roles]})


def set_password(name: str, password: str) -> Request[Empty]:
    """Set a reviewer's password; their sessions end."""
    return Request("POST", f"{path_of(name)}/password", Empty, body={"password": password})


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


LIST_GROUPS = Request("GET", "/api/v1/groups", people.GroupList)
LIST_ALL_ABSENCES = Request("GET", "/api/v1/absences", people.AbsenceList)
LIST_VIEWS = Request("GET", "/api/v1/account/views", people.SavedViewList)


LIST_ROLES = Request("GET", "/api/v1/roles", people.RoleList)


def save_role(name: str, role: Mapping[str, Sequence[str]]) -> Request[people.RoleView]:
    """Create or change a role."""
    body: JsonObject = {field: [*values] for field, values in role.items()}
    return Request("PUT", f"/api/v1/roles/{segment(name)}", people.RoleView, body=body)


def delete_role(name: str) -> Request[Empty]:
    """Delete a role that nobody has."""
    return Request("DELETE", f"/api/v1/roles/{segment(name)}", Empty)


LIST_EMERGENCIES = Request("GET", "/api/v1/break-glass", people.EmergencyList)
END_OWN_EMERGENCY = Request("DELETE", "/api/v1/break-glass", Empty)


def break_glass(reason: str) -> Request[people.EmergencyView]:
    """Take emergency rights for an hour."""
    return Request("POST", "/api/v1/break-glass", people.EmergencyView, body={"reason": reason})


def end_emergency(name: str) -> Request[Empty]:
    """End the emergency rights of another person."""
    return Request("DELETE", f"/api/v1/break-glass/{segment(name)}", Empty)


def create_group(name: str, members: Sequence[str], editors: Sequence[str]) -> Request[people.GroupView]:
    """Create a group."""
    body: JsonObject = {"name": name, "members": [*members], "editors": [*editors]}
    return Request("POST", "/api/v1/groups", people.GroupView, body=body)


def find_group(name: str) -> Request[people.GroupView]:
    """Read a group."""
    return Request("GET", f"/api/v1/groups/{segment(name)}", people.GroupView)


def change_group(group: people.GroupView, members: Sequence[str], editors: Sequence[str]) -> Request[people.GroupView]:
    """Replace a group's members and editors; its working hours stay."""
    hours = group.working_hours.model_dump(mode="json", warnings=False) if group.working_hours is not None else None
    body: JsonObject = {"members": [*members], "editors": [*editors], "working_hours": hours}
    return Request("PUT", f"/api/v1/groups/{segment(group.name)}", people.GroupView, body=body)


def delete_group(name: str) -> Request[Empty]:
    """Delete a group."""
    return Request("DELETE", f"/api/v1/groups/{segment(name)}", Empty)


def list_contacts(person: str | None) -> Request[people.ContactList]:
    """List your own contacts, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/contacts", people.ContactList)


def create_contact_code(channel: str) -> Request[people.CodeView]:
    """Create a code for a channel."""
    return Request("POST", "/api/v1/account/contacts/codes", people.CodeView, body={"channel": channel})


def unlink_contact(person: str | None, contact_id: str) -> Request[Empty]:
    """Unlink one of your own contacts, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/contacts/{segment(contact_id)}", Empty)


def list_absences() -> Request[people.AbsenceList]:
    """List your own absences."""
    return Request("GET", "/api/v1/account/absences", people.AbsenceList)


def add_absence(
    person: str | None, starts_at: datetime, ends_at: datetime, delegate: str | None
) -> Request[people.AbsenceView]:
    """Add an absence of yourself, or of a reviewer."""
    body: JsonObject = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat(), "delegate": delegate}
    return Request("POST", f"{path_of(person)}/absences", people.AbsenceView, body=body)


def delete_absence(person: str | None, absence_id: str) -> Request[Empty]:
    """Delete an absence of yourself, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/absences/{segment(absence_id)}", Empty)


def find_preferences(person: str | None) -> Request[people.Preferences]:
    """Read your own preferences, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/preferences", people.Preferences)


def save_preferences(person: str | None, preferences: people.Preferences) -> Request[people.Preferences]:
    """Replace your own preferences, or those of a reviewer."""
    body = preferences.model_dump(mode="json", warnings=False)  # a newer desk may have sent values unknown here
    return Request("PUT", f"{path_of(person)}/preferences", people.Preferences, body=body)


def show_who(rule: str, at: datetime, call: JsonValue = None) -> Request[people.WhoView]:
    """Say who would be asked when under a rule."""
    body: JsonObject = {"rule": rule, "at": at.isoformat(), "call": call}
    return Request("POST", "/api/v1/who", people.WhoView, body=body)


def path_of(name: str | None) -> str:
    """Return the path of your own account, or of a reviewer."""
    return f"/api/v1/reviewers/{segment(name)}" if name is not None else "/api/v1/account"


def save_view(name: str, search: str) -> Request[people.SavedViewView]:
    """Save a search of the inbox, in place of your view with the same name."""
    return Request("POST", "/api/v1/account/views", people.SavedViewView, body={"name": name, "search": search})


def delete_view(view_id: str) -> Request[Empty]:
    """Delete one of your saved people."""
    return Request("DELETE", f"/api/v1/account/views/{segment(view_id)}", Empty)
