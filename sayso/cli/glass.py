"""Commands for emergency rights: take them for an hour, list and end them."""

from typing import Annotated

import typer

from sayso.cli.logins import exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import administration

glass = typer.Typer(help="Take emergency rights for an hour, list and end them.", no_args_is_help=True)


@glass.command("break")
def break_glass(reason: Annotated[str, typer.Argument(help="Why, in a sentence; everybody sees it.")]) -> None:
    """Take emergency rights for an hour. Others are informed at once."""
    broken = exchange(administration.break_glass(reason))
    until, informed = format_time(broken.until), ", ".join(broken.informed)
    make_console().print(show_line(f"You have emergency rights until {until}. Informed: {informed}."))


@glass.command("list")
def list_glasses(json: JsonOption = False) -> None:
    """List the emergency rights that last."""
    listed = exchange(administration.LIST_GLASSES).glasses
    rows = ((one.person, format_time(one.until), one.reason, ", ".join(one.informed)) for one in listed)
    print_list(listed, json, ("person", "until", "reason", "informed"), rows)


@glass.command("end")
def end_glass(
    name: Annotated[str | None, typer.Argument(help="Whose; your own if left out. Requires an admin.")] = None,
) -> None:
    """End emergency rights before their hour is over."""
    exchange(administration.END_OWN_GLASS if name is None else administration.end_glass(name))
    make_console().print(show_line(f"The emergency rights{f' of {name}' if name else ''} have ended."))
