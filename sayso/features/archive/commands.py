"""Commands for archived runs, and for the memory and disk that a desk needs."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client.evidence import list_archived
from sayso.features.archive.sizing import ONE_CALL, Shape, estimate_size
from sayso.wire.evidence import ArchivedRunView

_PAGE = 200
_HOT_DAYS = (7, 30, 90)
_UNITS = ((2**30, "GiB"), (2**20, "MiB"))


def archive(
    day: Annotated[str, typer.Argument(help="A day in UTC, such as 2026-10-31; without it, the last one.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="The largest number of runs; without it, all.")] = None,
    json: JsonOption = False,
) -> None:
    """List the archived runs that began on a day."""
    runs: list[ArchivedRunView] = []
    with connect() as client:
        while limit is None or len(runs) < limit:
            page = client.exchange(list_archived(day, len(runs), _PAGE))
            runs, day = [*runs, *page.runs], page.day
            if len(page.runs) < _PAGE:
                break
    rows = ((format_time(run.started_at), run.status, run.agent, run.owner, run.id) for run in runs[:limit])
    empty = f"No archived run began on {day}." if day else "No run was archived yet."
    print_list(runs[:limit], json, ("began (UTC)", "status", "agent", "owner", "run"), rows, empty=empty)


def size(
    runs_per_hour: Annotated[
        int, typer.Option("--runs-per-hour", min=1, max=10**6, help="Runs that begin in an hour, on average.")
    ],
    hot_days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="SAYSO_HOT_DAYS; without it, a row each for 7, 30 and 90.")
    ] = None,
    keep_days: Annotated[int, typer.Option(min=1, max=36_500, help="SAYSO_KEEP_TRAIL_DAYS.")] = 365,
    calls: Annotated[int, typer.Option(min=1, max=1000, help="Calls of a run that people decide.")] = ONE_CALL.calls,
    call_bytes: Annotated[
        int, typer.Option(min=1, max=10**7, help="JSON of a call's arguments, in bytes.")
    ] = ONE_CALL.call_bytes,
    decisions: Annotated[int, typer.Option(min=1, max=100, help="Decisions that a call needs.")] = ONE_CALL.decisions,
) -> None:
    """Print the memory and disk that a desk needs, from what runs of several shapes needed."""
    shape = Shape(calls, call_bytes, decisions)
    columns = ("days in memory", "memory", "STORE_MEMORY_LIMIT", "store's file", "archive")
    rows = []
    for days in _HOT_DAYS if hot_days is None else (hot_days,):
        rows.append((str(days), *map(_write_bytes, estimate_size(runs_per_hour, days, keep_days, shape))))
    print_list([], False, columns, rows, empty="")
    text = (
        f"{runs_per_hour} runs an hour, with {calls} calls of {call_bytes} bytes and {decisions} decisions each, kept "
        f"for {keep_days} days. Add the size of comments and attached files."
    )
    make_console().print(show_line(text, width=500))


def _write_bytes(count: int) -> str:
    unit, name = next((pair for pair in _UNITS if count >= pair[0]), _UNITS[-1])
    return f"{count / unit:,.1f} {name}"
