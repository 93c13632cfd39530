"""Commands that freeze and unfreeze a tool, an agent or everything."""

import shlex
import sys
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import format_time, make_console, show, show_line
from sayso.client import Client, administration
from sayso.errors import InvalidInput, UnknownName


def freeze(
    scope: Annotated[str, typer.Argument(help="all, agent:NAME or tool:NAME.")],
    reason: Annotated[str, typer.Option("--message", "-m", help="The reason, shown to everybody.")] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="Freeze a name that was never seen.")] = False,
) -> None:
    """Stop new calls of a tool, of an agent, or all. Requires an admin."""
    with connect() as client:
        try:
            made = client.exchange(administration.freeze(scope, reason, confirm=confirm))
        except UnknownName as error:
            if not sys.stdin.isatty():
                raise InvalidInput(f"{error.message} To confirm it here, give --confirm.") from error
            make_console().print(show(error.message, "yellow"))
            typer.confirm("Freeze it anyway?", abort=True)
            made = client.exchange(administration.freeze(scope, reason, confirm=True))
    command = f"sayso unfreeze {shlex.quote(made.scope)}"
    make_console().print(show_line(f"{made.scope} is frozen by {made.by}. `{command}` ends the freeze."))


def list_freezes(json: JsonOption = False) -> None:
    """List the freezes in force."""
    with connect() as client:
        freezes = client.exchange(administration.LIST_FREEZES).freezes
    rows = ((freeze.id, freeze.scope, freeze.by, format_time(freeze.at), freeze.reason) for freeze in freezes)
    print_list(freezes, json, ("id", "scope", "by", "since", "reason"), rows, empty="Nothing is frozen.")


def unfreeze(
    scope: Annotated[str, typer.Argument(help="all, agent:NAME or tool:NAME, or the id of a freeze.")],
) -> None:
    """End a freeze. Deadlines shift by its duration. Requires an admin."""
    with connect() as client:
        ended = client.exchange(administration.unfreeze(_find(client, scope)))
    make_console().print(show_line(f"{ended.scope} is no longer frozen."))


def _find(client: Client, name: str) -> str:
    """Return the name of a freeze in force. A freeze of time ends on its page: it requires a choice."""
    freezes = client.exchange(administration.LIST_FREEZES).freezes
    scope = next((freeze.scope for freeze in freezes if name in (freeze.id, freeze.scope)), None)
    if scope is None:
        raise InvalidInput(f"There is no freeze {name!r} in force. `sayso freezes` lists them.")
    if scope == "time":
        raise InvalidInput(f"Choose on {client.url}/operate what happens to the deadlines that passed meanwhile.")
    return name
