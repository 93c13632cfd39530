"""Requests and responses for groups, contacts, preferences and absences."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import JsonValue

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import Empty, View


class GroupView(View):
    """A group of reviewers."""

    name: str
    members: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()
    working_hours: JsonObject | None = None


class GroupPage(View):
    """All groups, sorted by name."""

    groups: tuple[GroupView, ...]


class ContactView(View):
    """A linked address."""

    id: str
    channel: str
    address: str
    label: str = ""
    linked_at: datetime


class ContactPage(View):
    """A person's linked addresses."""

    contacts: tuple[ContactView, ...]


class ContactCode(View):
    """A code that links an address once."""

    code: str
    channel: str
    expires_at: datetime


class AbsenceView(View):
    """A time in which a person is absent."""

    id: str
    person: str
    starts_at: datetime
    ends_at: datetime
    delegate: str | None = None


class AbsencePage(View):
    """Absences by start."""

    absences: tuple[AbsenceView, ...]


class HoursView(View):
    """A span of local time on some weekdays."""

    start: str
    end: str
    weekdays: tuple[str, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class PreferencesView(View):
    """How a person is notified."""

    time_zone: str
    quiet_hours: HoursView | None = None
    working_hours: JsonObject | None = None
    digest: str = "off"
    cap_per_hour: int | None = None
    language: str = "en"


class AskedView(View):
    """A person who is asked in a step, over a channel."""

    step: int
    at: datetime
    reviewer: str
    person: str
    channel: str
    sent_at: datetime | None = None
    reason: str = ""


class WhoView(View):
    """Everybody who is asked, and the effect of the deadline."""

    asked: tuple[AskedView, ...]
    deadline_at: datetime
    end: str


class SavedViewView(View):
    """A search of the inbox that you saved under a name."""

    id: str
    name: str
    search: str


class SavedViewPage(View):
    """Saved views, sorted by name."""

    views: tuple[SavedViewView, ...]


LIST_GROUPS = Request("GET", "/api/v1/groups", GroupPage)
LIST_ALL_ABSENCES = Request("GET", "/api/v1/absences", AbsencePage)
LIST_VIEWS = Request("GET", "/api/v1/account/views", SavedViewPage)


def create_group(name: str, members: Sequence[str], editors: Sequence[str]) -> Request[GroupView]:
    """Create a group."""
    body: JsonObject = {"name": name, "members": [*members], "editors": [*editors]}
    return Request("POST", "/api/v1/groups", GroupView, body=body)


def find_group(name: str) -> Request[GroupView]:
    """Read a group."""
    return Request("GET", f"/api/v1/groups/{segment(name)}", GroupView)


def change_group(group: GroupView, members: Sequence[str], editors: Sequence[str]) -> Request[GroupView]:
    """Replace a group's members and editors; its working hours stay."""
    body: JsonObject = {"members": [*members], "editors": [*editors], "working_hours": group.working_hours}
    return Request("PUT", f"/api/v1/groups/{segment(group.name)}", GroupView, body=body)


def delete_group(name: str) -> Request[Empty]:
    """Delete a group."""
    return Request("DELETE", f"/api/v1/groups/{segment(name)}", Empty)


def list_contacts(person: str | None) -> Request[ContactPage]:
    """List your own contacts, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/contacts", ContactPage)


def create_contact_code(channel: str) -> Request[ContactCode]:
    """Create a code for a channel."""
    return Request("POST", "/api/v1/account/contacts/codes", ContactCode, body={"channel": channel})


def unlink_contact(person: str | None, contact_id: str) -> Request[Empty]:
    """Unlink one of your own contacts, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/contacts/{segment(contact_id)}", Empty)


def list_absences() -> Request[AbsencePage]:
    """List your own absences."""
    return Request("GET", "/api/v1/account/absences", AbsencePage)


def add_absence(
    person: str | None, starts_at: datetime, ends_at: datetime, delegate: str | None
) -> Request[AbsenceView]:
    """Add an absence of yourself, or of a reviewer."""
    body: JsonObject = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat(), "delegate": delegate}
    return Request("POST", f"{path_of(person)}/absences", AbsenceView, body=body)


def delete_absence(person: str | None, absence_id: str) -> Request[Empty]:
    """Delete an absence of yourself, or of a reviewer."""
    return Request("DELETE", f"{path_of(person)}/absences/{segment(absence_id)}", Empty)


def find_preferences(person: str | None) -> Request[PreferencesView]:
    """Read your own preferences, or those of a reviewer."""
    return Request("GET", f"{path_of(person)}/preferences", PreferencesView)


def save_preferences(person: str | None, preferences: PreferencesView) -> Request[PreferencesView]:
    """Replace your own preferences, or those of a reviewer."""
    return Request("PUT", f"{path_of(person)}/preferences", PreferencesView, body=preferences.model_dump(mode="json"))


def show_who(rule: str, at: datetime, call: JsonValue = None) -> Request[WhoView]:
    """Say who would be asked when under a rule."""
    body: JsonObject = {"rule": rule, "at": at.isoformat(), "call": call}
    return Request("POST", "/api/v1/who", WhoView, body=body)


def path_of(name: str | None) -> str:
    """Return the path of your own account, or of a reviewer."""
    return f"/api/v1/reviewers/{segment(name)}" if name is not None else "/api/v1/account"


def save_view(name: str, search: str) -> Request[SavedViewView]:
    """Save a search of the inbox, in place of your view with the same name."""
    return Request("POST", "/api/v1/account/views", SavedViewView, body={"name": name, "search": search})


def delete_view(view_id: str) -> Request[Empty]:
    """Delete one of your saved views."""
    return Request("DELETE", f"/api/v1/account/views/{segment(view_id)}", Empty)
