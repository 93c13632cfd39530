"""Commands for second looks: list the calls that wait for one, and take one."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import make_console, show_line
from sayso.client import channels as requests

app = typer.Typer(help="Judge calls that were drawn by chance after they were decided.", no_args_is_help=True)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run, from `sayso second-looks list`.")]
SeqArgument = Annotated[int, typer.Argument(metavar="EVENT", help="The number of the event, from the same list.")]


@app.command("list")
def list_waiting(json: JsonOption = False) -> None:
    """List the calls that wait for a second look."""
    with connect() as client:
        calls = client.exchange(requests.LIST_SECOND_LOOK).calls
    rows = (
        (
            call.run_id,
            str(call.seq),
            call.tool,
            call.verdict,
            ", ".join(call.decided_by) or "rules",
            call.rule_id or "default",
            "you" if call.may_take else "others",
        )
        for call in calls
    )
    columns = ("run", "event", "tool", "verdict", "by", "rule", "for")
    print_list(calls, json, columns, rows, empty="No call waits for a second look.")


@app.command()
def agree(
    run_id: RunArgument,
    seq: SeqArgument,
    reason: Annotated[str, typer.Option(help="Why, for the trail.")] = "",
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
    with connect() as client:
        call = client.exchange(requests.take_second_look(run_id, seq, agrees=agrees, reason=reason))
    opinion = "agree" if agrees else "disagree"
    make_console().print(show_line(f"Recorded: you {opinion} with {call.tool}, which was {call.verdict}."))
