"""`sayso policy replay`: all recorded calls of a range judged again by other rules."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sayso.cli.logins import connect
from sayso.cli.operations.reports import read_time
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.policies import read_lists, read_rules
from sayso.cli.screens import format_time, make_console, make_table, show, show_line
from sayso.client import Client, rulebook
from sayso.client.rulebook import ListedCall, ReplayCell, ReplayView
from sayso.clock import iso_utc, now_ms
from sayso.rendering.money import write_sum
from sayso.sentences.rulebook.replays import describe_past, describe_review_time
from sayso.text.summaries import write_pretty

_WAIT_S = 2
_EFFECTS = ("allowed", "asked", "denied")
_LISTED_CHARS = 800
_FORBIDDEN = ("denied", "refused")

SinceOption = Annotated[str, typer.Option("--from", help="Since this date or time, such as 2026-11-01.")]
UntilOption = Annotated[str | None, typer.Option("--to", help="Before this date or time; by default now.")]
SumOption = Annotated[str | None, typer.Option("--sum", help="The argument to sum, such as args.amount.")]


def replay(
    file: Path, since: SinceOption, until: UntilOption = None, path: SumOption = None, json: JsonOption = False
) -> None:
    """Judge all recorded calls of a range again by the rules in a file, beside what people decided. For admins.

    Nothing is changed. The exit code is 0 also where calls would change.
    """
    end_with(run_replay(file, since, until, path=path), json=json)


def run_replay(
    file: Path, since: str, until: str | None, *, path: str | None = None, base: Path | None = None
) -> ReplayView:
    """Return the replay of the rules in a file when it has ended; `base` holds rules to compare with."""
    begin, end = read_time(since, "--from"), read_time(until, "--to") if until is not None else iso_utc(now_ms())
    lists = {**(read_lists(base) if base is not None else {}), **read_lists(file)}
    text, before = read_rules(file), read_rules(base) if base is not None else None
    with connect() as client:
        started = client.exchange(
            rulebook.start_replay(text, file.name, begin, end, path=path, base=before, lists=lists)
        )
        return wait_for(client, started)


def end_with(replay: ReplayView, *, json: bool) -> None:
    """Print a replay that has ended, as JSON or in words; the exit code is 1 if it failed."""
    if json:
        print_json(replay)
    else:
        show_replay(make_console(), replay)
    if replay.status != "done":
        raise typer.Exit(1)


def show_replay(console: Console, replay: ReplayView) -> None:
    """Print a replay: the matrix, the calls that would now be allowed against a denial, and what is missing."""
    if replay.error:
        console.print(show(replay.error, "red"))
    span = f"{format_time(replay.since)} to {format_time(replay.until)} UTC"
    console.print(show_line(f"{replay.file}, version {replay.version}: {replay.calls:,} recorded calls, {span}."))
    console.print(show_line(f"{replay.changed:,} {'would have gone otherwise' if replay.shadow else 'would change'}."))
    _show_matrix(console, replay)
    for cell in replay.cells:
        if cell.past in _FORBIDDEN and cell.now == "allowed" and cell.was != "allowed":
            _show_listed(console, cell, "by the candidate" if replay.shadow else "now")
    for change in replay.changes:
        rules = f"rule {change.before or 'default'} {change.was} → rule {change.after or 'default'} {change.now}"
        console.print(show_line(f"{change.count:>9,}  {rules}"))
    for missing in replay.missing:
        why = "not judged by the candidate" if replay.shadow else "cannot be judged again"
        console.print(show_line(f"{missing.count:>9,}  {why}: {missing.fact}", "yellow"))
    for gap in replay.gaps:
        console.print(show(gap, "yellow"))
    time = replay.review_time
    console.print(show(describe_review_time(time.measured, time.typical_ms, time.saved_ms, time.added_ms)))


def wait_for(client: Client, started: ReplayView) -> ReplayView:
    """Return a replay when it has ended, with its progress on the screen; Ctrl-C ends it."""
    console = make_console(error=True)
    replay = started
    try:
        with console.status("Waiting for the desk …") as status:
            while replay.status in ("waiting", "running"):
                replay = client.exchange(rulebook.read_replay(started.id, _WAIT_S))
                status.update(show_line(f"{replay.runs:,} of {replay.of_runs:,} runs, {replay.calls:,} calls"))
    except KeyboardInterrupt:
        client.exchange(rulebook.delete_replay(started.id))
        raise
    return replay


def _show_matrix(console: Console, replay: ReplayView) -> None:
    table = make_table("", *(f"{'candidate:' if replay.shadow else 'now'} {effect}" for effect in _EFFECTS))
    rows = dict.fromkeys((cell.past, cell.was) for cell in replay.cells)
    for past, was in rows:
        label = describe_past(past) + (f", {was} before" if replay.compares else "")
        cells = {cell.now: cell for cell in replay.cells if (cell.past, cell.was) == (past, was)}
        table.add_row(label, *(show_line(_write_cell(cells.get(now))) for now in _EFFECTS))
    if rows:
        console.print(table)
    if any(cell.sums for cell in replay.cells):
        console.print(show_line("In brackets is the sum of the calls.", "dim"))


def _write_cell(cell: ReplayCell | None) -> str:
    if cell is None:
        return "-"
    sums = ", ".join(write_sum(number, currency) for currency, number in sorted(cell.sums.items()))
    return f"{cell.count:,}" + (f" ({sums})" if sums else "")


def _show_listed(console: Console, cell: ReplayCell, by: str) -> None:
    console.print(show_line(f"{describe_past(cell.past).capitalize()}, and {by} {cell.now}:", "bold red"))
    for call in cell.listed:
        console.print(show_line(_write_listed(call), width=_LISTED_CHARS))
    if cell.count > len(cell.listed):
        console.print(show_line(f"The newest {len(cell.listed):,} of {cell.count:,}."))


def _write_listed(call: ListedCall) -> str:
    args = " ".join(write_pretty(call.args).split()) if call.args else ""
    place = f"{call.suspension_id} {call.item_id}" if call.item_id else call.run_id
    rules = f"{call.before or 'default'} → {call.now or 'default'}"
    return f"  {format_time(call.at)}  {place}  {call.tool} {args}  ({rules})"
