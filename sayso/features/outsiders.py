"""The command that invites people outside the desk to decide an item, lists their invitations, and ends one."""

from typing import Annotated

import typer

from sayso.cli.reviews import IdArgument, ItemOption, pick
from sayso.cli.screens import JsonOption, format_time, print_list
from sayso.client import outsiders
from sayso.errors import InvalidInput


def invite(
    id_: IdArgument,
    address: Annotated[str | None, typer.Argument(help="A mail address that the rule allows.")] = None,
    note: Annotated[str, typer.Option(help="What you write to them; it stands in the mail.")] = "",
    hours: Annotated[int, typer.Option(min=1, max=168, help="How long they may decide.")] = 24,
    revoke: Annotated[str | None, typer.Option(help="End the invitation of this id.")] = None,
    item: ItemOption = None,
    json: JsonOption = False,
) -> None:
    """Invite somebody outside to decide an item, or end an invitation. Without an address, list the invitations."""
    if address and revoke:
        raise InvalidInput("Give an address to invite, or --revoke to end an invitation, not both.")
    with pick(id_, item) as (client, suspension, picked):
        request = outsiders.list_invitations(suspension.id, picked.item_id)
        if address:
            request = outsiders.invite(suspension.id, picked, address, note, hours * 3_600)
        elif revoke:
            request = outsiders.revoke_invitation(suspension.id, picked.item_id, revoke)
        known = client.exchange(request).invitations
    rows = ((sent.id, sent.address, sent.state, sent.by, format_time(sent.until)) for sent in known)
    print_list(known, json, ("id", "address", "state", "by", "until"), rows, empty="Nobody outside was invited.")
