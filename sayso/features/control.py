"""Commands for fire drills and for second looks."""

from typing import Annotated

import typer

from sayso.cli.logins import exchange
from sayso.cli.screens import JsonOption, make_console, print_json, print_list, show_line
from sayso.client import channels as requests

drills = typer.Typer(help="Plant false calls that test whether reviewers look.", no_args_is_help=True)


@drills.command("list")
def list_drills(json: JsonOption = False) -> None:
    """List the templates. Requires an admin."""
    listed = exchange(requests.LIST_DRILLS).drills
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
    planted = exchange(requests.plant_drill(template, reviewer))
    if json:
        print_json(planted)
        return
    make_console().print(show_line(f"Planted {planted.suspension_id}/{planted.item_id} for {reviewer}."))


app = typer.Typer(help="Judge calls that were drawn by chance after they were decided.", no_args_is_help=True)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run, from `sayso second-looks list`.")]
SeqArgument = Annotated[int, typer.Argument(metavar="EVENT", help="The number of the event, from the same list.")]


@app.command("list")
def list_waiting(json: JsonOption = False) -> None:
    """List the calls that wait for a second look."""
    calls = exchange(requests.LIST_SECOND_LOOK).calls
    rows = (
        (
            *(call.run_id, str(call.seq), call.tool, call.verdict, ", ".join(call.decided_by) or "rules"),
            *(call.rule_id or "default", "you" if call.may_take else "others"),
        )
        for call in calls
    )
    columns = ("run", "event", "tool", "verdict", "by", "rule", "for")
    print_list(calls, json, columns, rows, empty="No call waits for a second look.")


@app.command()
def agree(
    run_id: RunArgument, seq: SeqArgument, reason: Annotated[str, typer.Option(help="Why, for the trail.")] = ""
) -> None:
    """Say that a call was right."""
    _take(run_id, seq, agrees=True, reason=reason)


@app.command()
def disagree(
    run_id: RunArgument, seq: SeqArgument, reason: Annotated[str, typer.Option(help="What was wrong.")]
) -> None:
    """Say that a call was wrong. It changes nothing about the call."""
    _take(run_id, seq, agrees=False, reason=reason)


def _take(run_id: str, seq: int, *, agrees: bool, reason: str) -> None:
    call = exchange(requests.take_second_look(run_id, seq, agrees=agrees, reason=reason))
    opinion = "agree" if agrees else "disagree"
    make_console().print(show_line(f"Recorded: you {opinion} with {call.tool}, which was {call.verdict}."))
