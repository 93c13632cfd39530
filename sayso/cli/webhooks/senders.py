"""Commands for senders of signed decisions."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import make_console, show_line
from sayso.client import webhooks as requests
from sayso.client.webhooks import SenderView

senders = typer.Typer(help="Manage senders of signed decisions. Requires an admin.", no_args_is_help=True)

SenderArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso webhooks senders list`.")]
OverlapOption = Annotated[int, typer.Option(help="Seconds for which the old secret stays valid.")]


@senders.command("list")
def list_senders(json: JsonOption = False) -> None:
    """List all senders, including revoked ones."""
    with connect() as client:
        listed = client.exchange(requests.LIST_SENDERS).senders
    rows = ((view.id, view.name, view.reviewer, "revoked" if view.revoked_at else "active") for view in listed)
    print_list(listed, json, ("id", "name", "decides as", "state"), rows, empty="There are no senders.")


@senders.command("add")
def add_sender(
    name: Annotated[str, typer.Argument(help="The sender's name.")],
    reviewer: Annotated[str, typer.Option("--as", help="The reviewer in whose name it decides.")],
) -> None:
    """Register a sender. Its secret is printed only here, alone on standard output."""
    with connect() as client:
        _print_sender(client.exchange(requests.create_sender(name, reviewer)))


@senders.command("rotate")
def rotate_sender(sender_id: SenderArgument, overlap_s: OverlapOption = 86_400) -> None:
    """Create a new secret. The old one is accepted until the overlap ends."""
    with connect() as client:
        _print_sender(client.exchange(requests.rotate_sender(sender_id, overlap_s)))


@senders.command("revoke")
def revoke_sender(sender_id: SenderArgument) -> None:
    """Refuse everything from a sender at once, for good."""
    with connect() as client:
        revoked = client.exchange(requests.revoke_sender(sender_id))
    make_console().print(show_line(f"{revoked.id} named {revoked.name} is revoked."))


def _print_sender(made: SenderView) -> None:
    text = f"{made.id} decides as {made.reviewer} at {made.path}: its secret, shown only once."
    make_console(error=True).print(show_line(text))
    make_console().print(show_line(made.secret or "", width=400), soft_wrap=True)
