"""Routes of contacts, preferences, absences and groups, and the one that says who is asked when under a rule."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.core.calendar import WorkingHours
from sayso.wire.models import RequestBody, SentTimestamp, moment
from sayso.wire.people import (
    AbsenceList,
    AbsenceView,
    AskedView,
    CodeView,
    ContactList,
    ContactView,
    GroupList,
    GroupView,
    Preferences,
    WhoView,
)
from service.channels.previews import SampleCall
from service.core.auth.credentials import require_own_password
from service.core.auth.groups import MOST_MEMBERS
from service.core.store.directory import Absence
from service.core.wiring import Wiring
from service.edge.api.dependencies import OpenChannels, Parts, Person, ReviewerName
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.people.api import Member
from service.features.people.who import plan

own_contacts = APIRouter(prefix="/account/contacts", tags=["contacts"], route_class=SignedInRoute)
contacts = APIRouter(prefix="/reviewers/{name}/contacts", tags=["contacts"], route_class=SignedInRoute)

ContactId = Annotated[str, Path(min_length=1, max_length=100, examples=["con_3f1c0a5b7d9e2f4a6b8c0d1e2f3a4b5c"])]
_PROBLEMS = problems(401, 403, 404)


class CodeRequest(RequestBody):
    """The channel in which you will send the code."""

    channel: str = Field(min_length=1, max_length=40, examples=["telegram"])


@own_contacts.get("", operation_id="listOwnContacts", responses=_PROBLEMS)
async def list_own_contacts(caller: Member, parts: Parts) -> ContactList:
    """List your linked addresses."""
    return await _list(parts, caller.name)


@own_contacts.post(
    "/codes", status_code=201, operation_id="createContactCode", responses=problems(400, 401, 403, 415, 429)
)
async def create_contact_code(body: CodeRequest, caller: Member, parts: Parts) -> CodeView:
    """Create a code that links one of your addresses within 10 minutes."""
    require_own_password(caller)
    return CodeView.model_validate(await parts.contacts.create_code(caller.name, body.channel, caller.made))


@own_contacts.delete("/{contact_id}", status_code=204, operation_id="unlinkOwnContact", responses=_PROBLEMS)
async def unlink_own_contact(contact_id: ContactId, caller: Member, parts: Parts) -> None:
    """Unlink one of your addresses."""
    await parts.contacts.unlink(caller.name, contact_id, caller.name)


@contacts.get("", operation_id="listContacts", responses=_PROBLEMS)
async def list_contacts(name: ReviewerName, caller: Person, parts: Parts) -> ContactList:
    """List a reviewer's linked addresses."""
    return await _list(parts, name)


@contacts.delete("/{contact_id}", status_code=204, operation_id="unlinkContact", responses=WRITES)
async def unlink_contact(name: ReviewerName, contact_id: ContactId, caller: Person, parts: Parts) -> None:
    """Unlink an address of a reviewer."""
    await parts.contacts.unlink(name, contact_id, caller.name)


async def _list(parts: Wiring, name: str) -> ContactList:
    return ContactList(contacts=[ContactView.model_validate(contact) for contact in await parts.contacts.list_of(name)])


own_duty = APIRouter(prefix="/account", tags=["duty"], route_class=SignedInRoute)
duty = APIRouter(prefix="/reviewers/{name}", tags=["duty"], route_class=SignedInRoute)
absences = APIRouter(prefix="/absences", tags=["duty"], route_class=SignedInRoute)

AbsenceId = Annotated[str, Path(min_length=1, max_length=100, examples=["abs_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]


class AbsenceRequest(RequestBody):
    """A time in which a person is absent."""

    starts_at: SentTimestamp = Field(examples=["2026-12-21T08:00:00Z"])
    ends_at: SentTimestamp = Field(examples=["2027-01-04T08:00:00Z"])
    delegate: str | None = Field(
        default=None, max_length=64, description="Who decides meanwhile; null for nobody.", examples=["ben"]
    )


@own_duty.get("/preferences", operation_id="readOwnPreferences", responses=_PROBLEMS)
async def read_own_preferences(caller: Member, parts: Parts) -> Preferences:
    """Read how you are notified."""
    return await parts.duty.find_preferences(caller.name)


@own_duty.put("/preferences", operation_id="saveOwnPreferences", responses=WRITES)
async def save_own_preferences(body: Preferences, caller: Member, parts: Parts) -> Preferences:
    """Replace your preferences; omitted fields get their defaults."""
    return await parts.duty.save_preferences(caller.name, body, caller.name)


@own_duty.get("/absences", operation_id="listOwnAbsences", responses=_PROBLEMS)
async def list_own_absences(caller: Member, parts: Parts) -> AbsenceList:
    """List your absences."""
    return _show(await parts.duty.list_absences(caller.name))


@own_duty.post("/absences", status_code=201, operation_id="addOwnAbsence", responses=WRITES)
async def add_own_absence(body: AbsenceRequest, caller: Member, parts: Parts) -> AbsenceView:
    """Say that you will be absent, and who decides for you meanwhile."""
    return await _add(parts, caller.name, body, caller.name)


@own_duty.delete("/absences/{absence_id}", status_code=204, operation_id="deleteOwnAbsence", responses=_PROBLEMS)
async def delete_own_absence(absence_id: AbsenceId, caller: Member, parts: Parts) -> None:
    """Delete one of your absences."""
    await parts.duty.delete_absence(caller.name, absence_id, caller.name)


@absences.get("", operation_id="listAllAbsences", responses=problems(401, 403))
async def list_all_absences(caller: Person, parts: Parts) -> AbsenceList:
    """List everybody's absences."""
    return _show(await parts.duty.list_absences())


@duty.get("/preferences", operation_id="readPreferences", responses=_PROBLEMS)
async def read_preferences(name: ReviewerName, caller: Person, parts: Parts) -> Preferences:
    """Read how a reviewer is notified."""
    return await parts.duty.find_preferences(name)


@duty.put("/preferences", operation_id="savePreferences", responses=WRITES)
async def save_preferences(name: ReviewerName, body: Preferences, caller: Person, parts: Parts) -> Preferences:
    """Replace a reviewer's preferences; omitted fields get their defaults."""
    return await parts.duty.save_preferences(name, body, caller.name)


@duty.post("/absences", status_code=201, operation_id="addAbsence", responses=WRITES)
async def add_absence(name: ReviewerName, body: AbsenceRequest, caller: Person, parts: Parts) -> AbsenceView:
    """Say that a reviewer is absent, and who decides for them meanwhile."""
    return await _add(parts, name, body, caller.name)


@duty.delete("/absences/{absence_id}", status_code=204, operation_id="deleteAbsence", responses=_PROBLEMS)
async def delete_absence(name: ReviewerName, absence_id: AbsenceId, caller: Person, parts: Parts) -> None:
    """Delete an absence of a reviewer."""
    await parts.duty.delete_absence(name, absence_id, caller.name)


async def _add(parts: Wiring, person: str, body: AbsenceRequest, by: str) -> AbsenceView:
    from_ms, to_ms = (round(at.timestamp() * 1000) for at in (body.starts_at, body.ends_at))
    return AbsenceView.model_validate(await parts.duty.add_absence(person, from_ms, to_ms, body.delegate, by))


def _show(absences: list[Absence]) -> AbsenceList:
    return AbsenceList(absences=[AbsenceView.model_validate(absence) for absence in absences])


groups = APIRouter(prefix="/groups", tags=["groups"], route_class=SignedInRoute)

GroupName = Annotated[str, Path(min_length=1, max_length=100, examples=["payments"])]
Names = Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=MOST_MEMBERS)]


class GroupChange(RequestBody):
    """The people of a group, as a whole."""

    members: Names = Field(description="Who may decide where a rule names the group.", examples=[["anna", "ben"]])
    editors: Names = Field(
        default=(), description="Who may change the members beside admins. Only admins change it.", examples=[["anna"]]
    )
    working_hours: WorkingHours | None = None


class GroupRequest(GroupChange):
    """A new group."""

    name: str = Field(min_length=1, max_length=64, description="Rules name it `group:<name>`.", examples=["payments"])


@groups.get("", operation_id="listGroups", responses=problems(401, 403))
async def list_groups(caller: Person, parts: Parts) -> GroupList:
    """List all groups."""
    return GroupList(groups=[GroupView.model_validate(group) for group in await parts.groups.list_all()])


@groups.post("", status_code=201, operation_id="createGroup", responses=WRITES)
async def create_group(body: GroupRequest, caller: Person, parts: Parts) -> GroupView:
    """Create a group of active reviewers."""
    made = await parts.groups.create(body.name, body.members, body.editors, caller.name, body.working_hours)
    return GroupView.model_validate(made)


@groups.get("/{group}", operation_id="readGroup", responses=_PROBLEMS)
async def read_group(group: GroupName, caller: Person, parts: Parts) -> GroupView:
    """Read a group."""
    return GroupView.model_validate(await parts.groups.read(group))


@groups.put("/{group}", operation_id="changeGroup", responses=WRITES)
async def change_group(group: GroupName, body: GroupChange, caller: Member, parts: Parts) -> GroupView:
    """Replace a group's members, editors and working hours. Open items follow the members within a second."""
    saved = await parts.groups.update(
        group, body.members, body.editors, caller.name, caller.rights, working_hours=body.working_hours
    )
    return GroupView.model_validate(saved)


@groups.delete("/{group}", status_code=204, operation_id="deleteGroup", responses=_PROBLEMS)
async def delete_group(group: GroupName, caller: Person, parts: Parts) -> None:
    """Delete a group. Nobody decides for it where rules and open items still name it."""
    await parts.groups.delete(group, caller.name)


who = APIRouter(prefix="/who", tags=["duty"], route_class=SignedInRoute)


class WhoRequest(RequestBody):
    """A rule, the time at which an item begins to wait, and a sample call."""

    rule: str = Field(min_length=1, max_length=200, examples=["refunds"])
    at: SentTimestamp = Field(examples=["2026-12-24T18:00:00Z"])
    call: SampleCall | None = Field(default=None, description="The call, with its owner; a refund by default.")


@who.post("", operation_id="showWho", responses=WRITES)
async def show_who(body: WhoRequest, caller: Person, parts: Parts, channels: OpenChannels) -> WhoView:
    """Say who would be asked when about a call under a rule, and what happens at its deadline. Nothing is sent."""
    call = body.call or SampleCall(tool="refund")
    forecast = await plan(parts, channels, parts.rules.policy(), body.rule, call, int(body.at.timestamp() * 1000))
    asked = [AskedView.model_validate(row) for row in forecast.asked]
    return WhoView(asked=asked, deadline_at=moment(forecast.deadline_at_ms), end=forecast.end)
