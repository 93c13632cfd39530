"""Requests for groups, contacts, preferences, absences and saved views."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import JsonValue

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import people as views
from sayso.wire.models import Empty

LIST_GROUPS = Request("GET", "/api/v1/groups", views.GroupList)
LIST_ALL_ABSENCES = Request("GET", "/api/v1/absences", views.AbsenceList)
LIST_VIEWS = Request("GET", "/api/v1/account/views", views.SavedViewList)


def create_group(name: str, members: Sequence[str], editors: Sequence[str]) -> Request[views.GroupView]:
    """Create a group."""
    body: JsonObject = {"name": name, "members": [*members], "editors": [*editors]}
    return Request("POST", "/api/v1/groups", views.GroupView, body=body)


def find_group(name: str) -> Request[views.GroupView]:
    """Read a group."""
    return Request("GET", f"/api/v1/groups/{segment(name)}", views.GroupView)


def change_group(group: views.GroupView, members: Sequence[str], editors: Sequence[str]) -> Request[views.GroupView]:
    """Replace a group's members and editors; its working hours stay."""
    hours = group.working_hours.model_dump(mode="json", warnings=False) if group.working_hours is not None else None
    body: JsonObject = {"members": [*members], "editors": [*editors], "working_hours": hours}
    return Request("PUT", f"/api/v1/groups/{segment(group.name)}", views.GroupView, body=body)


def delete_group(name: str) -> Request[Empty]:
    """Delete a group."""
    return Request("DELETE", f"/api/v1/groups/{segment(name)}", Empty)


def list_contacts(person: str | None) -> Request[views.ContactList]:
    """List your own contacts, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/contacts", views.ContactList)


def create_contact_code(channel: str) -> Request[views.CodeView]:
    """Create a code for a channel."""
    return Request("POST", "/api/v1/account/contacts/codes", views.CodeView, body={"channel": channel})


def unlink_contact(person: str | None, contact_id: str) -> Request[Empty]:
    """Unlink one of your own contacts, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/contacts/{segment(contact_id)}", Empty)


def list_absences() -> Request[views.AbsenceList]:
    """List your own absences."""
    return Request("GET", "/api/v1/account/absences", views.AbsenceList)


def add_absence(
    person: str | None, starts_at: datetime, ends_at: datetime, delegate: str | None
) -> Request[views.AbsenceView]:
    """Add an absence of yourself, or of a reviewer."""
    body: JsonObject = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat(), "delegate": delegate}
    return Request("POST", f"{path_of(person)}/absences", views.AbsenceView, body=body)


def delete_absence(person: str | None, absence_id: str) -> Request[Empty]:
    """Delete an absence of yourself, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/absences/{segment(absence_id)}", Empty)


def find_preferences(person: str | None) -> Request[views.Preferences]:
    """Read your own preferences, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/preferences", views.Preferences)


def save_preferences(person: str | None, preferences: views.Preferences) -> Request[views.Preferences]:
    """Replace your own preferences, or those of a reviewer."""
    body = preferences.model_dump(mode="json", warnings=False)  # a newer desk may have sent values unknown here
    return Request("PUT", f"{path_of(person)}/preferences", views.Preferences, body=body)


def show_who(rule: str, at: datetime, call: JsonValue = None) -> Request[views.WhoView]:
    """Say who would be asked when under a rule."""
    body: JsonObject = {"rule": rule, "at": at.isoformat(), "call": call}
    return Request("POST", "/api/v1/who", views.WhoView, body=body)


def path_of(name: str | None) -> str:
    """Return the path of your own account, or of a reviewer."""
    return f"/api/v1/reviewers/{segment(name)}" if name is not None else "/api/v1/account"


def save_view(name: str, search: str) -> Request[views.SavedViewView]:
    """Save a search of the inbox, in place of your view with the same name."""
    return Request("POST", "/api/v1/account/views", views.SavedViewView, body={"name": name, "search": search})


def delete_view(view_id: str) -> Request[Empty]:
    """Delete one of your saved views."""
    return Request("DELETE", f"/api/v1/account/views/{segment(view_id)}", Empty)
