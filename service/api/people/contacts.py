"""Routes of contacts: people link and unlink their addresses, admins read and unlink those of others."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.api.people.accounts import Member
from service.api.routing.dependencies import Admin, Parts, ReviewerName
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, Timestamp, View
from service.auth.credentials import require_own_password
from service.http.openapi import WRITES, problems
from service.wiring import Wiring

account = APIRouter(prefix="/account/contacts", tags=["contacts"], route_class=SignedInRoute)
reviewers = APIRouter(prefix="/reviewers/{name}/contacts", tags=["contacts"], route_class=SignedInRoute)

ContactId = Annotated[str, Path(min_length=1, max_length=100, examples=["con_3f1c0a5b7d9e2f4a6b8c0d1e2f3a4b5c"])]
_PROBLEMS = problems(401, 403, 404)


class CodeRequest(RequestBody):
    """The channel in which you will send the code."""

    channel: str = Field(min_length=1, max_length=40, examples=["telegram"])


class CodeView(View):
    """A code that links one address to you, once. Send it to Sayso in the channel."""

    code: str
    channel: str
    expires_at: Timestamp = Field(validation_alias="expires_at_ms")


class ContactView(View):
    """An address in a channel that is linked to a person."""

    id: str
    channel: str
    address: str
    label: str = Field(description="What the channel calls the address.")
    linked_at: Timestamp = Field(validation_alias="linked_at_ms")


class ContactList(BaseModel):
    """A person's contacts, the oldest first."""

    contacts: list[ContactView]


@account.get("", operation_id="listOwnContacts", responses=_PROBLEMS)
async def list_own_contacts(caller: Member, parts: Parts) -> ContactList:
    """List your linked addresses."""
    return await _list(parts, caller.name)


@account.post("/codes", status_code=201, operation_id="createContactCode", responses=problems(400, 401, 403, 415, 429))
async def create_contact_code(body: CodeRequest, caller: Member, parts: Parts) -> CodeView:
    """Create a code that links one of your addresses within 10 minutes."""
    require_own_password(caller)
    return CodeView.model_validate(await parts.contacts.create_code(caller.name, body.channel, caller.made))


@account.delete("/{contact_id}", status_code=204, operation_id="unlinkOwnContact", responses=_PROBLEMS)
async def unlink_own_contact(contact_id: ContactId, caller: Member, parts: Parts) -> None:
    """Unlink one of your addresses."""
    await parts.contacts.unlink(caller.name, contact_id, caller.name)


@reviewers.get("", operation_id="listContacts", responses=_PROBLEMS)
async def list_contacts(name: ReviewerName, caller: Admin, parts: Parts) -> ContactList:
    """List a reviewer's linked addresses."""
    return await _list(parts, name)


@reviewers.delete("/{contact_id}", status_code=204, operation_id="unlinkContact", responses=WRITES)
async def unlink_contact(name: ReviewerName, contact_id: ContactId, caller: Admin, parts: Parts) -> None:
    """Unlink an address of a reviewer."""
    await parts.contacts.unlink(name, contact_id, caller.name)


async def _list(parts: Wiring, name: str) -> ContactList:
    return ContactList(contacts=[ContactView.model_validate(contact) for contact in await parts.contacts.list_of(name)])
