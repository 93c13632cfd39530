"""Commands for webhook endpoints, failed messages and senders of signed decisions."""

import json as json_module
from typing import Annotated

import typer

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import channels as requests
from sayso.errors import InvalidInput
from sayso.wire.channels import NewEndpointView, NewSenderView

senders = typer.Typer(help="Manage senders of signed decisions. Requires an admin.", no_args_is_help=True)

SenderArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso webhooks senders list`.")]
OverlapOption = Annotated[int, typer.Option(help="Seconds for which the old secret stays valid.")]


@senders.command("list")
def list_senders(json: JsonOption = False) -> None:
    """List all senders, including revoked ones."""
    listed = exchange(requests.LIST_SENDERS).senders
    rows = ((view.id, view.name, view.reviewer, "revoked" if view.revoked_at else "active") for view in listed)
    print_list(listed, json, ("id", "name", "decides as", "state"), rows, empty="There are no senders.")


@senders.command("add")
def add_sender(
    name: Annotated[str, typer.Argument(help="The sender's name.")],
    reviewer: Annotated[str, typer.Option("--as", help="The reviewer in whose name it decides.")],
) -> None:
    """Register a sender. Its secret is printed only here, alone on standard output."""
    _print_sender(exchange(requests.create_sender(name, reviewer)))


@senders.command("rotate")
def rotate_sender(sender_id: SenderArgument, overlap_s: OverlapOption = 86_400) -> None:
    """Create a new secret. The old one is accepted until the overlap ends."""
    _print_sender(exchange(requests.rotate_sender(sender_id, overlap_s)))


@senders.command("revoke")
def revoke_sender(sender_id: SenderArgument) -> None:
    """Refuse everything from a sender at once, for good."""
    revoked = exchange(requests.revoke_sender(sender_id))
    make_console().print(show_line(f"{revoked.id} named {revoked.name} is revoked."))


def _print_sender(made: NewSenderView) -> None:
    text = f"{made.id} decides as {made.reviewer} at {made.path}: its secret, shown only once."
    make_console(error=True).print(show_line(text))
    make_console().print(show_line(made.secret, width=400), soft_wrap=True)


webhooks = typer.Typer(help="Manage webhooks out and in.", no_args_is_help=True)
webhooks.add_typer(senders, name="senders")

SCHEMES = ("hmac", "ed25519")
_MOST_AT_ONCE = 200

EndpointArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso webhooks list`.")]


@webhooks.command("list")
def list_endpoints(json: JsonOption = False) -> None:
    """List endpoints: all for an admin."""
    endpoints = exchange(requests.LIST_ENDPOINTS).endpoints
    rows = ((view.id, view.url, view.owner or "all runs", view.state, view.reason) for view in endpoints)
    print_list(endpoints, json, ("id", "url", "runs of", "state", "reason"), rows, empty="There are no endpoints.")


@webhooks.command("add")
def add(
    url: Annotated[str, typer.Argument(help="A public https URL.")],
    event: Annotated[list[str] | None, typer.Option("--event", help="An event to send; every one by default.")] = None,
    signature: Annotated[str, typer.Option(help="hmac or ed25519.")] = "hmac",
    description: Annotated[str, typer.Option(help="A note for people.")] = "",
) -> None:
    """Register an endpoint. Its secret is printed only here, alone on standard output."""
    if signature not in SCHEMES:
        raise InvalidInput(f"{signature!r} is not a way to sign. Choose {' or '.join(SCHEMES)}.")
    made = exchange(requests.create_endpoint(url, event or [], signature, description))
    _print_endpoint(made)
    hint = f"Give it to the receiver, then run `sayso webhooks verify {made.id}`."
    make_console(error=True).print(show_line(hint))


@webhooks.command("verify")
def verify(endpoint_id: EndpointArgument) -> None:
    """Have an endpoint return a signed challenge. Then it receives events."""
    verified = exchange(requests.verify_endpoint(endpoint_id))
    make_console().print(show_line(f"{verified.id} at {verified.url} is {verified.state}."))


@webhooks.command("disable")
def disable(endpoint_id: EndpointArgument) -> None:
    """Send an endpoint nothing until it is verified again."""
    disabled = exchange(requests.disable_endpoint(endpoint_id))
    make_console().print(show_line(f"{disabled.id} at {disabled.url} is {disabled.state}."))


@webhooks.command("rotate")
def rotate(endpoint_id: EndpointArgument, overlap_s: OverlapOption = 86_400) -> None:
    """Create a new secret. Until the overlap ends, messages carry signatures of both."""
    _print_endpoint(exchange(requests.rotate_endpoint(endpoint_id, overlap_s)))


@webhooks.command("remove")
def remove(endpoint_id: EndpointArgument) -> None:
    """Delete an endpoint."""
    exchange(requests.delete_endpoint(endpoint_id))
    make_console().print(show_line(f"{endpoint_id} is deleted."))


@webhooks.command("events")
def list_events() -> None:
    """Print the JSON Schema of every event."""
    typer.echo(json_module.dumps(exchange(requests.LIST_EVENTS).events, indent=2))


@webhooks.command("failed")
def list_failed(json: JsonOption = False) -> None:
    """List messages that were refused and not delivered since."""
    failures = exchange(requests.LIST_FAILURES).failures
    rows = (
        (
            *(failure.id, failure.type, str(failure.tries)),
            *(format_time(failure.next_try_at) if failure.next_try_at else "never", failure.reason),
        )
        for failure in failures
    )
    columns = ("id", "event", "tries", "next try", "reason")
    print_list(failures, json, columns, rows, empty="Every message was delivered.")


@webhooks.command("redeliver")
def redeliver(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids from `sayso webhooks failed`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every failed message.")] = False,
) -> None:
    """Send messages again at once."""
    if bool(ids) == every:
        raise InvalidInput("Name the messages to send again, or give --all.")
    with connect() as client:
        wanted = ids or [failure.id for failure in client.exchange(requests.LIST_FAILURES).failures]
        parts = [wanted[start : start + _MOST_AT_ONCE] for start in range(0, len(wanted), _MOST_AT_ONCE)]
        sent = sum(client.exchange(requests.redeliver(part)).redelivered for part in parts)
    make_console().print(show_line(f"{sent} messages are sent again."))


def _print_endpoint(made: NewEndpointView) -> None:
    what = "its public key" if made.public_key else "its secret, shown only once"
    make_console(error=True).print(show_line(f"{made.id} at {made.url}: {what}."))
    make_console().print(show_line(made.public_key or made.secret or "", width=400), soft_wrap=True)
