"""Commands that list and revoke mandates. A plan is approved or denied as any other item."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client.rulebook import LIST_MANDATES, revoke_mandate

app = typer.Typer(help="List and revoke mandates: approved plans of agents.", no_args_is_help=True)

MandateArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso mandates list`.")]


def list_mandates(json: JsonOption = False) -> None:
    """List the approved mandates of the last month with their use."""
    with connect() as client:
        mandates = client.exchange(LIST_MANDATES).mandates
    rows = (
        (
            mandate.id,
            mandate.state,
            mandate.agent,
            " ".join(mandate.sentences),
            ", ".join(mandate.approved_by),
            f"{mandate.calls} of {mandate.count}",
            format_time(mandate.last_used_at) if mandate.last_used_at else "never",
        )
        for mandate in mandates
    )
    columns = ("id", "state", "agent", "lets run", "by", "calls", "last")
    print_list(mandates, json, columns, rows, empty="No plan was approved.")


def revoke(mandate_id: MandateArgument) -> None:
    """End a mandate at once, also for calls that it allowed and that have not started."""
    with connect() as client:
        mandate = client.exchange(revoke_mandate(mandate_id))
    make_console().print(show_line(f"{mandate.id} is {mandate.state}."))


app.command("list")(list_mandates)
app.command()(revoke)
