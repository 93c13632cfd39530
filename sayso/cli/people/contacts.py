"""Commands for addresses in channels."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json, print_list
from sayso.cli.screens import format_time, make_console, show_line
from sayso.client import people as requests

contacts = typer.Typer(help="Link and unlink your addresses in channels.", no_args_is_help=True)

PersonOption = Annotated[
    str | None, typer.Option("--person", help="Another person's name. Requires an admin.", metavar="NAME")
]


@contacts.command("list")
def list_contacts(person: PersonOption = None, json: JsonOption = False) -> None:
    """List your linked addresses."""
    with connect() as client:
        listed = client.exchange(requests.list_contacts(person)).contacts
    rows = ((view.id, view.channel, view.label or view.address, format_time(view.linked_at)) for view in listed)
    print_list(listed, json, ("id", "channel", "address", "linked"), rows, empty="No address is linked.")


@contacts.command("code")
def create_code(channel: Annotated[str, typer.Argument(help="The channel's name.")], json: JsonOption = False) -> None:
    """Create a code that links one of your addresses in a channel within 10 minutes."""
    with connect() as client:
        made = client.exchange(requests.create_contact_code(channel))
    if json:
        print_json(made)
    else:
        make_console().print(show_line(f"{made.code}: send it to Sayso in {made.channel} within 10 minutes."))


@contacts.command("unlink")
def unlink(
    contact_id: Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso contacts list`.")],
    person: PersonOption = None,
) -> None:
    """Unlink an address."""
    with connect() as client:
        client.exchange(requests.unlink_contact(person, contact_id))
    make_console().print(show_line(f"{contact_id} is unlinked."))
