"""Start, read and cancel runs from the shell, and read what happened to them."""

from time import sleep
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show, show_event, show_json, show_runs
from sayso.cli.trails import read_trail
from sayso.client.responses import Run, RunEvent
from sayso.records.events import TrailHead

LOOK_EVERY_S = 1.0

run_app = typer.Typer(help="Start, show and cancel runs.", no_args_is_help=True)


def list_runs(
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    json: JsonOption = False,
) -> None:
    """List runs, the newest first."""
    with connect() as client:
        found = list(client.runs(status, limit=limit).runs)
    if json:
        print_json(found)
    else:
        make_console().print(show_runs(found))


@run_app.command("start")
def start(
    agent: str,
    text: Annotated[str, typer.Argument(help="What the agent is asked.")],
    title: Annotated[str | None, typer.Option(help="What people see.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    json: JsonOption = False,
) -> None:
    """Start a run of a registered agent."""
    with connect() as client:
        started = client.start_run(agent, text, title=title)
        _show_run(client.await_run(started.id) if wait else started, json)


@run_app.command("show")
def show_run(run_id: str, json: JsonOption = False) -> None:
    """Show a run as it stands."""
    with connect() as client:
        _show_run(client.find_run(run_id), json)


@run_app.command("cancel")
def cancel(
    run_id: str, reason: Annotated[str | None, typer.Option(help="Why.")] = None, json: JsonOption = False
) -> None:
    """End a run for good."""
    with connect() as client:
        _show_run(client.cancel(run_id, reason), json)


def events(
    run_id: str,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one event a line, for programs.")] = False,
) -> None:
    """Show what happened to a run, and say where its trail was altered or cut, if it was."""
    console, head = make_console(), TrailHead()

    def write(event: RunEvent) -> None:
        if json:
            print_json(event, on_one_line=True)
        else:
            console.print(show_event(event))

    with connect() as client:
        while True:
            ended = not follow or client.find_run(run_id).ended
            head = read_trail(client, write, run_id, head)
            if ended:
                return
            sleep(LOOK_EVERY_S)


def _show_run(found: Run, json: bool) -> None:
    if json:
        print_json(found)
        return
    console = make_console()
    console.print(show_runs([found]))
    if found.error:
        console.print(show(found.error, "red"))
    if found.result is not None:
        console.print(show_json(found.result))
