"""Routes of preferences and absences: people manage their own, admins those of others."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.api.people.accounts import Member
from service.api.routing.dependencies import Admin, Parts, Person, ReviewerName
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, SentTimestamp, Timestamp, View
from service.http.openapi import WRITES, problems
from service.store.directory.duty import Absence, Preferences
from service.wiring import Wiring

account = APIRouter(prefix="/account", tags=["duty"], route_class=SignedInRoute)
reviewers = APIRouter(prefix="/reviewers/{name}", tags=["duty"], route_class=SignedInRoute)
absences = APIRouter(prefix="/absences", tags=["duty"], route_class=SignedInRoute)

AbsenceId = Annotated[str, Path(min_length=1, max_length=100, examples=["abs_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]
_PROBLEMS = problems(401, 403, 404)


class AbsenceRequest(RequestBody):
    """A time in which a person is absent."""

    starts_at: SentTimestamp = Field(examples=["2026-12-21T08:00:00Z"])
    ends_at: SentTimestamp = Field(examples=["2027-01-04T08:00:00Z"])
    delegate: str | None = Field(
        default=None, max_length=64, description="Who decides meanwhile; null for nobody.", examples=["ben"]
    )


class AbsenceView(View):
    """A time in which a person is absent, and who decides for them then."""

    id: str
    person: str
    starts_at: Timestamp = Field(validation_alias="from_ms")
    ends_at: Timestamp = Field(validation_alias="to_ms")
    delegate: str | None


class AbsenceList(BaseModel):
    """Absences by start."""

    absences: list[AbsenceView]


@account.get("/preferences", operation_id="readOwnPreferences", responses=_PROBLEMS)
async def read_own_preferences(caller: Member, parts: Parts) -> Preferences:
    """Read how you are notified."""
    return await parts.duty.find_preferences(caller.name)


@account.put("/preferences", operation_id="saveOwnPreferences", responses=WRITES)
async def save_own_preferences(body: Preferences, caller: Member, parts: Parts) -> Preferences:
    """Replace your preferences; omitted fields get their defaults."""
    return await parts.duty.save_preferences(caller.name, body, caller.name)


@account.get("/absences", operation_id="listOwnAbsences", responses=_PROBLEMS)
async def list_own_absences(caller: Member, parts: Parts) -> AbsenceList:
    """List your absences."""
    return _show(await parts.duty.list_absences(caller.name))


@account.post("/absences", status_code=201, operation_id="addOwnAbsence", responses=WRITES)
async def add_own_absence(body: AbsenceRequest, caller: Member, parts: Parts) -> AbsenceView:
    """Say that you will be absent, and who decides for you meanwhile."""
    return await _add(parts, caller.name, body, caller.name)


@account.delete("/absences/{absence_id}", status_code=204, operation_id="deleteOwnAbsence", responses=_PROBLEMS)
async def delete_own_absence(absence_id: AbsenceId, caller: Member, parts: Parts) -> None:
    """Delete one of your absences."""
    await parts.duty.delete_absence(caller.name, absence_id, caller.name)


@absences.get("", operation_id="listAllAbsences", responses=problems(401, 403))
async def list_all_absences(caller: Person, parts: Parts) -> AbsenceList:
    """List everybody's absences."""
    return _show(await parts.duty.list_absences())


@reviewers.get("/preferences", operation_id="readPreferences", responses=_PROBLEMS)
async def read_preferences(name: ReviewerName, caller: Admin, parts: Parts) -> Preferences:
    """Read how a reviewer is notified."""
    return await parts.duty.find_preferences(name)


@reviewers.put("/preferences", operation_id="savePreferences", responses=WRITES)
async def save_preferences(name: ReviewerName, body: Preferences, caller: Admin, parts: Parts) -> Preferences:
    """Replace a reviewer's preferences; omitted fields get their defaults."""
    return await parts.duty.save_preferences(name, body, caller.name)


@reviewers.post("/absences", status_code=201, operation_id="addAbsence", responses=WRITES)
async def add_absence(name: ReviewerName, body: AbsenceRequest, caller: Admin, parts: Parts) -> AbsenceView:
    """Say that a reviewer is absent, and who decides for them meanwhile."""
    return await _add(parts, name, body, caller.name)


@reviewers.delete("/absences/{absence_id}", status_code=204, operation_id="deleteAbsence", responses=_PROBLEMS)
async def delete_absence(name: ReviewerName, absence_id: AbsenceId, caller: Admin, parts: Parts) -> None:
    """Delete an absence of a reviewer."""
    await parts.duty.delete_absence(name, absence_id, caller.name)


async def _add(parts: Wiring, person: str, body: AbsenceRequest, by: str) -> AbsenceView:
    from_ms, to_ms = (round(at.timestamp() * 1000) for at in (body.starts_at, body.ends_at))
    return AbsenceView.model_validate(await parts.duty.add_absence(person, from_ms, to_ms, body.delegate, by))


def _show(absences: list[Absence]) -> AbsenceList:
    return AbsenceList(absences=[AbsenceView.model_validate(absence) for absence in absences])
