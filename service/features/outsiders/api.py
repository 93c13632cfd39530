"""Routes of invitations: reviewers ask people outside the desk about one item."""

from fastapi import APIRouter

from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.outsiders import find_state
from sayso.wire.outsiders import InvitationPage, InvitationView, InviteRequest
from service.edge.api.dependencies import IdempotencyKey, ItemId, OpenChannels, Parts, Person, SuspensionId
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import READS, WRITES
from service.features.outsiders.inviting import Outsiders

invitations = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)
_PATH = "/{suspension_id}/items/{item_id}/invitations"


@invitations.post(_PATH, operation_id="inviteOutsider", responses=WRITES)
async def invite_outsider(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: InviteRequest,
    caller: Person,
    parts: Parts,
    channels: OpenChannels,
    key: IdempotencyKey,
) -> InvitationPage:
    """Invite a mail address that the rule allows to decide the item once. The answer has all invitations to it.

    It gets a link by mail. Behind the link it has a code mailed, and sees the item with that.
    """
    operations = parts.feature(Outsiders)
    saved = await operations.invite(channels, (suspension_id, item_id), body, caller.reviewer("api"), key)
    return _view(saved.record, find_item(saved.record, item_id), saved.now_ms)


@invitations.get(_PATH, operation_id="listInvitations", responses=READS)
async def list_invitations(
    suspension_id: SuspensionId, item_id: ItemId, caller: Person, parts: Parts
) -> InvitationPage:
    """Return the invitations to an item, the first first."""
    saved = await parts.desk.suspensions.read(suspension_id)
    return _view(saved.record, find_item(saved.record, item_id), saved.now_ms)


@invitations.delete(f"{_PATH}/{{invitation_id}}", operation_id="revokeInvitation", responses=WRITES)
async def revoke_invitation(
    suspension_id: SuspensionId, item_id: ItemId, invitation_id: str, caller: Person, parts: Parts
) -> InvitationPage:
    """End an invitation, as who invited or may decide on the item. One that has ended stays as it is."""
    saved = await parts.desk.revoke_invitation(suspension_id, item_id, invitation_id, caller.reviewer("api"))
    return _view(saved.record, find_item(saved.record, item_id), saved.now_ms)


def _view(record: SuspensionRecord, item: Item, at_ms: int) -> InvitationPage:
    views = []
    for invitation in item.invitations:
        state = find_state(record, item, invitation, at_ms)
        views.append(InvitationView.model_validate({**vars(invitation), "state": state}))
    return InvitationPage(invitations=views)
