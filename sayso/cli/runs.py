"""Commands that start, show, cancel and erase runs, and print their events with their audit trail verified."""

from collections.abc import Callable
from time import sleep
from typing import Annotated

import typer

from sayso.cli import screens
from sayso.cli.logins import connect
from sayso.client import Client, administration, requests
from sayso.client.operations import RunState
from sayso.core.records.chain import ChainCheck
from sayso.core.records.events import EventType, TrailEntry, TrailHead
from sayso.errors import NotFound, SaysoError
from sayso.wire.suspensions import EventView, RunView, TrailPage

_PAGE = 200


def read_trail(client: Client, write: Callable[[EventView], None], run_id: str, check: ChainCheck) -> None:
    """Write the events behind those that were checked; raises `SaysoError` if the trail was altered or cut."""
    while (page := client.exchange(requests.list_events(run_id, check.head.seq, _PAGE))).next_after > check.head.seq:
        for event in page.events:
            write(event)
            if not page.partial:
                _follow(check, event)
        if page.partial:
            check.head = TrailHead(page.next_after)
            _check_fault(page)
    if not page.partial:
        head, recorded = check.head, page.head
        if check.unproven is not None:
            raise SaysoError(f"Event {check.unproven} has no contents, and no event records who erased them.")
        if recorded is not None and head.seq < recorded.seq:
            raise SaysoError(
                f"The trail ends with event {head.seq}, but the run's record names event {recorded.seq}: "
                "later events were removed. Ask the operator to run `sayso doctor`."
            )
        if recorded is not None and head.seq == recorded.seq and head.hash != recorded.hash:
            raise SaysoError(
                f"Event {head.seq} differs from the last event in the run's record: the trail was altered."
            )
    _check_fault(page)


def _check_fault(page: TrailPage) -> None:
    if page.fault:
        raise SaysoError(page.fault)


def _follow(check: ChainCheck, event: EventView) -> None:
    place = {"seq": event.seq, "at_ms": round(event.at.timestamp() * 1000), "type": event.type}
    entry = TrailEntry.model_validate({**place, "data": event.data, "hash": event.hash, "erased_by": event.erased_by})
    if check.accept(entry):
        return
    if event.type == EventType.CONTENTS_ERASED:
        raise SaysoError(
            f"Event {event.seq} erased other events than those shown: one of them was altered, or the contents were "
            "erased while they were read. Read the trail again."
        )
    raise SaysoError(
        f"Event {check.head.seq + 1} does not follow from the event before it: the trail was altered or is incomplete. "
        "Do not trust any later event."
    )


REFRESH_S = 1.0

RunArgument = Annotated[str, typer.Argument(metavar="ID", help="A run's id, or its end among the newest 200 runs.")]

run_app = typer.Typer(help="Start, show and cancel runs.", no_args_is_help=True)


def list_runs(
    status: Annotated[RunState | None, typer.Option(help="Show only runs with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    json: screens.JsonOption = False,
) -> None:
    """List runs, newest first."""
    with connect() as client:
        runs = list(client.runs(status, limit=limit).runs)
    if json:
        screens.print_json(runs)
    else:
        screens.make_console().print(screens.show_runs(runs))


@run_app.command("start")
def start(
    agent: str,
    text: Annotated[str, typer.Argument(help="The input of the agent.")],
    title: Annotated[str | None, typer.Option(help="The title that reviewers see.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end of the run.")] = False,
    json: screens.JsonOption = False,
) -> None:
    """Start a run of a registered agent."""
    with connect() as client:
        started = client.start_run(agent, text, title=title)
        _show_run(client.await_run(started.id) if wait else started, json)


@run_app.command("show")
def show_run(run_id: RunArgument, json: screens.JsonOption = False) -> None:
    """Show a run."""
    with connect() as client:
        _show_run(client.find_run(find_run_id(client, run_id)), json)


@run_app.command("cancel")
def cancel(
    run_id: RunArgument,
    reason: Annotated[str | None, typer.Option(help="The reason.")] = None,
    json: screens.JsonOption = False,
) -> None:
    """Cancel a run."""
    with connect() as client:
        _show_run(client.cancel(find_run_id(client, run_id), reason), json)


def erase(
    run_id: RunArgument,
    reason: Annotated[str, typer.Option("--message", "-m", help="The reason, kept in the trail.")],
    json: screens.JsonOption = False,
) -> None:
    """Erase the contents of an ended run for good; its decisions remain. Requires an admin."""
    with connect() as client:
        run_id = find_run_id(client, run_id)
        erasure = client.exchange(administration.erase_run(run_id, reason))
    if json:
        screens.print_json(erasure)
    else:
        screens.make_console().print(screens.show_line(f"The contents of {run_id} were erased by {erasure.by.id}."))


def events(
    run_id: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the run has ended.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one event per line, for programs.")] = False,
) -> None:
    """Print the events of a run, and verify that its trail is complete and unaltered."""
    console, check = screens.make_console(), ChainCheck()

    def write(event: EventView) -> None:
        if json:
            screens.print_json(event, on_one_line=True)
        else:
            console.print(screens.show_event(event))

    with connect() as client:
        run_id = find_run_id(client, run_id)
        while True:
            ended = not follow or client.find_run(run_id).ended
            read_trail(client, write, run_id, check)
            if ended:
                return
            sleep(REFRESH_S)


def find_run_id(client: Client, id_: str) -> str:
    """Return the id of the only one of the newest runs whose id ends so, or else what was given."""
    if not id_ or id_.startswith("run_"):
        return id_
    matches = [run.id for run in client.runs(limit=_PAGE).runs if run.id.endswith(id_)]
    if len(matches) > 1:
        raise NotFound(f"{len(matches)} runs match {id_!r}. Give more of an id from `sayso runs`.")
    return matches[0] if matches else id_


def _show_run(run: RunView, json: bool) -> None:
    if json:
        screens.print_json(run)
        return
    console = screens.make_console()
    console.print(screens.show_runs([run]))
    if run.erasure is not None:
        console.print(screens.show_erasure(run.erasure))
    if run.error:
        console.print(screens.show(run.error, "red"))
    if run.result is not None:
        console.print(screens.show_json(run.result))
