"""Commands that create, list, rotate and revoke keys."""

from typing import Annotated

import typer

from sayso.canonical_json import parse_json
from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import format_time, make_console, show_line
from sayso.client.administration import Key
from sayso.errors import InvalidInput

keys = typer.Typer(help="Manage keys. Requires an admin; a reviewer's key is made by its person.", no_args_is_help=True)

KINDS = ("agent", "reviewer", "provisioner")


@keys.command("create")
def create(
    name: Annotated[str, typer.Argument(help="The name of the agent or reviewer.")],
    kind: Annotated[str, typer.Option(help="agent, reviewer or provisioner.")] = "agent",
    context: Annotated[str, typer.Option(help="Facts about the holder for rules, as a JSON object.")] = "{}",
    owner: Annotated[str | None, typer.Option(help="The person who owns an agent's key.")] = None,
) -> None:
    """Create a key. It is printed only here, alone on standard output."""
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is not a kind of key. Choose {', '.join(KINDS)}.")
    facts = parse_json(context)
    if not isinstance(facts, dict):
        raise InvalidInput(f'The context {context!r} is not a JSON object. Write it as \'{{"env": "prod"}}\'.')
    with connect() as client:
        _print_new(client.create_key(name, kind, context=facts, owner=owner))


@keys.command("list")
def list_all(json: JsonOption = False) -> None:
    """List all keys, including revoked ones."""
    with connect() as client:
        listed = client.keys().keys
    rows = (
        (
            *(key.id, key.name, key.kind, key.owner or "", key.created_by, format_time(key.created_at)),
            *(format_time(key.last_used_at) if key.last_used_at else "never", _describe_state(key)),
        )
        for key in listed
    )
    print_list(listed, json, ("id", "name", "kind", "owner", "made by", "created", "last used", "state"), rows)


@keys.command("rotate")
def rotate(
    key_id: str, overlap_s: Annotated[int, typer.Option(help="Seconds for which the old key stays valid.")] = 3600
) -> None:
    """Create a successor of a key. The old key expires after the overlap."""
    with connect() as client:
        _print_new(client.rotate_key(key_id, overlap_s))


@keys.command("revoke")
def revoke(key_id: str) -> None:
    """Revoke a key. It fails everywhere within a second."""
    with connect() as client:
        revoked = client.revoke_key(key_id)
    make_console().print(show_line(f"{revoked.id} of {revoked.name} is revoked."))


def _print_new(key: Key) -> None:
    make_console(error=True).print(show_line(f"{key.id}: a key of the {key.kind} {key.name}, shown only once."))
    secret = key.key or "This request was sent before, so its key is not shown again."
    make_console().print(show_line(secret, width=400), soft_wrap=True)


def _describe_state(key: Key) -> str:
    if key.revoked_at is not None:
        return f"revoked {format_time(key.revoked_at)}"
    if not key.listed:
        return "NOT MADE BY SAYSO: revoke it"
    return f"expires {format_time(key.ends_at)}" if key.ends_at is not None else "valid"
