"""See to keys from the shell: make, list, rotate and revoke them. All of it takes an admin."""

from typing import Annotated

import typer
from rich.table import Table

from sayso.canonical_json import parse_json
from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show_line
from sayso.client.responses import Key
from sayso.errors import InvalidInput

keys = typer.Typer(help="See to the keys of agents, reviewers and provisioners; for admins.", no_args_is_help=True)

KINDS = ("agent", "reviewer", "provisioner")


@keys.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Whose key it is: an agent's name, or that of a reviewer.")],
    kind: Annotated[str, typer.Option(help="agent, reviewer or provisioner.")] = "agent",
    context: Annotated[str, typer.Option(help="What rules read as context of its runs, as JSON.")] = "{}",
) -> None:
    """Make a key. It is printed this once, alone on standard output."""
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is no kind of key; choose {', '.join(KINDS)}.")
    known = parse_json(context)
    if not isinstance(known, dict):
        raise InvalidInput(f'The context {context!r} is no JSON object; write it as \'{{"env": "prod"}}\'.')
    with connect() as client:
        _print_new(client.create_key(name, kind, context=known))


@keys.command("list")
def list_all(json: JsonOption = False) -> None:
    """List all keys, the revoked ones included."""
    with connect() as client:
        found = client.keys().keys
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("id", "name", "kind", "made", "state"):
        table.add_column(column, overflow="fold")
    for one in found:
        made = f"{one.created_at:%Y-%m-%d %H:%M}"
        table.add_row(show_line(one.id), show_line(one.name), show_line(one.kind), made, _describe_state(one))
    make_console().print(table)


@keys.command("rotate")
def rotate(
    key_id: str,
    overlap_s: Annotated[int, typer.Option(help="How long the old key holds beside the new one.")] = 3600,
) -> None:
    """Make the next key of the same name and kind; the old one ends by itself."""
    with connect() as client:
        _print_new(client.rotate_key(key_id, overlap_s))


@keys.command("revoke")
def revoke(key_id: str) -> None:
    """Make a key fail everywhere within a second."""
    with connect() as client:
        gone = client.revoke_key(key_id)
    make_console().print(show_line(f"{gone.id} of {gone.name} is revoked."))


def _print_new(made: Key) -> None:
    make_console(error=True).print(show_line(f"{made.id}: a key of the {made.kind} {made.name}, shown this once."))
    told = made.key or "The same request was sent before; its key is not shown again."
    make_console().print(show_line(told, width=400), soft_wrap=True)


def _describe_state(one: Key) -> str:
    if one.revoked_at is not None:
        return f"revoked {one.revoked_at:%Y-%m-%d %H:%M}"
    return f"ends {one.ends_at:%Y-%m-%d %H:%M}" if one.ends_at is not None else "holds"
