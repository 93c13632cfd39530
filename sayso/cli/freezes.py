"""Freeze from the shell: stop a tool, an agent or everything, see what is frozen, and unfreeze it."""

import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show, show_line
from sayso.client import requests
from sayso.client.clients import Client
from sayso.client.responses import FreezeSeen
from sayso.errors import InvalidInput, UnknownName


def freeze(
    scope: Annotated[str, typer.Argument(help="all, agent:NAME or tool:NAME.")],
    reason: Annotated[str, typer.Option("--message", "-m", help="Why; everybody is shown it.")] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="Freeze a name all the same that was never seen.")] = False,
) -> None:
    """Let nothing new of a tool or an agent start, or nothing at all; for admins."""
    with connect() as client:
        try:
            made = client.exchange(requests.freeze(scope, reason, confirm=confirm))
        except UnknownName as error:
            _ask_twice(error)
            made = client.exchange(requests.freeze(scope, reason, confirm=True))
    make_console().print(show_line(f"{made.scope} is frozen by {made.by}. `sayso unfreeze {made.id}` ends that."))


def list_freezes(json: JsonOption = False) -> None:
    """List what is frozen."""
    with connect() as client:
        found = client.exchange(requests.list_freezes()).freezes
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("id", "scope", "by", "since", "why"):
        table.add_column(column, overflow="fold")
    for one in found:
        words = map(show_line, (one.id, one.scope, one.by))
        table.add_row(*words, f"{one.at:%Y-%m-%d %H:%M}", show_line(one.reason))
    make_console().print(table if found else Text("Nothing is frozen.", "dim"))


def unfreeze(freeze_id: Annotated[str, typer.Argument(metavar="ID", help="As `sayso freezes` lists it.")]) -> None:
    """Let what was frozen go on; deadlines move by the time that it took. For admins."""
    with connect() as client:
        gone = client.exchange(requests.unfreeze(_find(client, freeze_id).id))
    make_console().print(show_line(f"{gone.scope} is no longer frozen."))


def _find(client: Client, freeze_id: str) -> FreezeSeen:
    """Return the freeze in force of that id; one of time is for the page, for it takes a choice."""
    found = next((one for one in client.exchange(requests.list_freezes()).freezes if one.id == freeze_id), None)
    if found is None:
        raise InvalidInput(f"Nothing is frozen under {freeze_id!r}. `sayso freezes` lists what is.")
    if found.scope == "time":
        raise InvalidInput(f"Say on the page {client.url}/freezes what becomes of the deadlines that time went past.")
    return found


def _ask_twice(error: UnknownName) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput(f"{error.message} Here that is --confirm.") from error
    make_console().print(show(error.message, "yellow"))
    typer.confirm("Freeze it all the same?", abort=True)
