"""Commands for fire drills: list the templates and plant one."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json, print_list
from sayso.cli.screens import make_console, show_line
from sayso.client import channels as requests

drills = typer.Typer(help="Plant false calls that test whether reviewers look.", no_args_is_help=True)


@drills.command("list")
def list_drills(json: JsonOption = False) -> None:
    """List the templates. Requires an admin."""
    with connect() as client:
        listed = client.exchange(requests.LIST_DRILLS).drills
    rows = ((drill.id, drill.tool, drill.agent, drill.requested_by, "; ".join(drill.signs)) for drill in listed)
    columns = ("id", "tool", "agent", "requested by", "signs")
    print_list(listed, json, columns, rows, empty="There are no templates. Set SAYSO_DRILLS on the service.")


@drills.command("plant")
def plant(
    template: Annotated[str, typer.Argument(help="The template's id.")],
    reviewer: Annotated[str, typer.Argument(help="The reviewer, who alone can decide it.")],
    json: JsonOption = False,
) -> None:
    """Plant a false call among a reviewer's items. Its permit is void. Requires an admin."""
    with connect() as client:
        planted = client.exchange(requests.plant_drill(template, reviewer))
    if json:
        print_json(planted)
        return
    make_console().print(show_line(f"Planted {planted.suspension_id}/{planted.item_id} for {reviewer}."))
