"""Requests that invite people outside the desk to decide an item, and end their invitations."""

from sayso.client.requests import Request, item_path, new_key, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.items import ItemView
from sayso.wire.outsiders import DAY_S, InvitationPage


def invite(
    suspension_id: str, item: ItemView, address: str, note: str = "", expires_in_s: int = DAY_S
) -> Request[InvitationPage]:
    """Invite an address that the rule allows to decide an item as you read it; returns all invitations to it."""
    body: JsonObject = {"address": address, "digest": item.digest, "note": note, "expires_in_s": expires_in_s}
    return Request("POST", _path(suspension_id, item.item_id), InvitationPage, body=body, key=new_key())


def list_invitations(suspension_id: str, item_id: str) -> Request[InvitationPage]:
    """Read the invitations to an item, the first first."""
    return Request("GET", _path(suspension_id, item_id), InvitationPage)


def revoke_invitation(suspension_id: str, item_id: str, invitation_id: str) -> Request[InvitationPage]:
    """End an invitation; returns all invitations to the item."""
    path = f"{_path(suspension_id, item_id)}/{segment(invitation_id)}"
    return Request("DELETE", path, InvitationPage)


def _path(suspension_id: str, item_id: str) -> str:
    return f"{item_path(suspension_id, item_id)}/invitations"
